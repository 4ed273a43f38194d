select id as loan_id, member as member_id, book as book_id, lent, returned from {{ ref('raw_loans') }}
