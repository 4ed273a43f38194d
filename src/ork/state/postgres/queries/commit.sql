-- name: commit_step
SELECT fenced, overruled, admitted, granted, exhausted, again_in, told
FROM ork.commit_step($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
                     $21, $22, $23);

-- name: versions_of_runs
SELECT id, version FROM ork.runs WHERE id = ANY ($1::text[]);

-- name: count_active
-- A walk over the index of active attempts: it costs what is active now.
-- A group holds as many slots as its attempts run at the same time, or fewer when fewer are left.
SELECT executor, pool, sum(number)::bigint FROM (
    SELECT executor, pool, least(parallelism, count(*)) AS number FROM ork.attempts
    WHERE active AND NOT is_waiting
    GROUP BY executor, pool, group_id, parallelism) AS held
GROUP BY executor, pool;
