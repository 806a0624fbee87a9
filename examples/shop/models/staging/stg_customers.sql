select
    customer_id,
    name,
    country,
    updated_at
from {{ ref('customers') }}
