-- name: commit_step
SELECT fenced, overruled, admitted, exhausted, again_in, told
FROM ork.commit_step($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
                     $21, $22);

-- name: versions_of_runs
SELECT id, version FROM ork.runs WHERE id = ANY ($1::text[]);

-- name: count_active
-- A walk over the index of active attempts: it costs what is active now.
SELECT executor, pool, count(*) FROM ork.attempts
WHERE active AND NOT is_waiting
GROUP BY executor, pool;
