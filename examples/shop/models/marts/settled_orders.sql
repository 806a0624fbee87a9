{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='ordered_at', batch_size='month',
          begin='2026-02-01', days_per_batch=24) }}

select order_id, customer_id, ordered_at, amount
from {{ ref('stg_orders') }}
where status = 'shipped' or status = 'returned'
