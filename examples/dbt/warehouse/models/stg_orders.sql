select id, name, amount from {{ ref('raw_orders') }} where amount > 0
