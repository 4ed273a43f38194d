select id as member_id, upper(name[1]) || name[2:] as member, joined from {{ ref('raw_members') }}
