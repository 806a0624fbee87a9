{{ config(event_time='ordered_at') }}

select
    order_id,
    customer_id,
    ordered_at,
    to_date(ordered_at) as order_day,
    amount,
    status
from {{ ref('orders') }}
