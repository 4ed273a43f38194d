select loan_id, member_id, title, pages, coalesce(returned - lent, 999) as days
from {{ ref('stg_loans') }} join {{ ref('stg_books') }} using (book_id)
