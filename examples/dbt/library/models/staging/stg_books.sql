select id as book_id, title, pages from {{ ref('raw_books') }}
