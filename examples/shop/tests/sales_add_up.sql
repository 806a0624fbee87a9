-- Every order that was not returned is in one day's sales.
select 1 as broken
from (select sum(amount) as amount from {{ ref('daily_sales') }}) sold
cross join (select sum(amount) as amount from {{ ref('stg_orders') }} where status != 'returned') ordered
where sold.amount != ordered.amount
