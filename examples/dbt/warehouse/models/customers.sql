select name, sum(amount)::int as total from {{ ref('stg_orders') }} group by name
