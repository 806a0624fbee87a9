{{ config(materialized='incremental', unique_key='order_day', partition_by='order_day') }}

select
    order_day,
    count(*) as orders,
    sum(amount) as amount
from {{ ref('stg_orders') }}
where status != 'returned'
{% if is_incremental() %}
  and order_day >= (select coalesce(max(order_day), date '1900-01-01') from {{ this }})
{% endif %}
group by order_day
