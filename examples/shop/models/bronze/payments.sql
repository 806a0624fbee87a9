{{ config(materialized='incremental', source_roots=['./landing/payments'], source_patterns=['\\.json$'],
          max_files_per_trigger=2, safety_buffer_seconds=0) }}

select
    payment_id,
    order_id,
    cast(amount as decimal(10, 2)) as amount,
    to_timestamp(paid_at) as paid_at,
    source_file_uri
from @data
