{{ config(unique_key='order_id', change_data_feed=true) }}

select order_id, customer_id, order_day, amount
from {{ ref('stg_orders') }}
where status != 'returned'
