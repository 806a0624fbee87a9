select
    c.customer_id,
    c.name,
    c.country,
    count(o.order_id) as orders,
    coalesce(sum(o.amount), 0) as amount,
    max(o.order_day) as last_order
from {{ ref('stg_customers') }} c
left join {{ ref('stg_orders') }} o
  on o.customer_id = c.customer_id and o.status != 'returned'
group by c.customer_id, c.name, c.country
