select member_id, member, count(loan_id)::int as loans, coalesce(sum(pages), 0)::int as pages
from {{ ref('stg_members') }}
left join (select member_id, loan_id, pages from {{ ref('stg_loans') }} join {{ ref('stg_books') }} using (book_id)) using (member_id)
group by member_id, member
