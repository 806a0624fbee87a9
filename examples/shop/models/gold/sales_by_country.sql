{{ config(unique_key='country') }}

select
    c.country,
    count(o.order_id) as orders,
    coalesce(sum(o.amount), 0) as amount
from {{ ref('stg_customers') }} c
left join {{ ref('orders_kept') }} o on o.customer_id = c.customer_id
group by c.country
