-- name: fence
-- The rows are locked before anything is decided, in the order of their ids.
SELECT id, owner, epoch, version, status, cancel_requested_at IS NOT NULL FROM ork.runs
WHERE id = ANY ($1::text[])
ORDER BY id FOR UPDATE;

-- name: unseen_cancels
-- A statement of its own: one that had to wait for the lock would not see a command that came meanwhile.
SELECT DISTINCT run_id FROM ork.commands WHERE run_id = ANY ($1::text[]) AND kind = 'cancel' AND done_at IS NULL;

-- name: write_runs
-- A cancel that came while its owner was deciding must survive a row written without it. Whether the run still needs an
-- owner follows from rows, so it cannot be forgotten.
UPDATE ork.runs AS r SET
    changed = n.changed, status = n.status, started_at = n.started_at, finished_at = n.finished_at, error = n.error,
    round = n.round, priority = n.priority, note = n.note,
    cancel_requested_at = CASE
        WHEN n.cancel_requested_at IS NULL AND EXISTS (
            SELECT 1 FROM ork.commands AS c WHERE c.run_id = r.id AND c.kind = 'cancel' AND c.done_at IS NULL)
        THEN r.cancel_requested_at ELSE n.cancel_requested_at END,
    owner = CASE WHEN n.rest THEN NULL ELSE r.owner END,
    attention = n.status IN ('pending', 'running')
        OR EXISTS (SELECT 1 FROM ork.commands AS c WHERE c.run_id = r.id AND c.done_at IS NULL)
        OR (n.status = 'paused' AND EXISTS (
            SELECT 1 FROM ork.attempts AS a WHERE a.run_id = r.id AND a.status IN ('dispatched', 'running')))
FROM unnest($1::text[], $2::bigint[], $3::boolean[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::text[],
            $8::integer[], $9::integer[], $10::timestamptz[], $11::text[])
    AS n (id, changed, rest, status, started_at, finished_at, error, round, priority, cancel_requested_at, note)
WHERE r.id = n.id;

-- name: touch_runs
UPDATE ork.runs AS r SET
    changed = n.changed,
    owner = CASE WHEN n.rest THEN NULL ELSE r.owner END,
    attention = r.status IN ('pending', 'running')
        OR EXISTS (SELECT 1 FROM ork.commands AS c WHERE c.run_id = r.id AND c.done_at IS NULL)
        OR (r.status = 'paused' AND EXISTS (
            SELECT 1 FROM ork.attempts AS a WHERE a.run_id = r.id AND a.status IN ('dispatched', 'running')))
FROM unnest($1::text[], $2::bigint[], $3::boolean[]) AS n (id, changed, rest)
WHERE r.id = n.id;

-- name: write_tasks
INSERT INTO ork.tasks (run_id, ordinal, idx, name, status, executor, attempt, earlier_attempts, reason, cause_name,
                       cause_idx, failure, exit_code, dispatched_at, started_at, finished_at, retry_at, output_key,
                       output_size, output, instances, item, cache_key, changed)
SELECT * FROM unnest(
    $1::text[], $2::integer[], $3::integer[], $4::text[], $5::text[], $6::text[], $7::integer[], $8::integer[],
    $9::text[], $10::text[], $11::integer[], $12::text[], $13::bigint[], $14::timestamptz[], $15::timestamptz[],
    $16::timestamptz[], $17::timestamptz[], $18::text[], $19::bigint[], $20::text[], $21::integer[], $22::text[],
    $23::text[], $24::bigint[])
ON CONFLICT (run_id, ordinal, idx) DO UPDATE SET
    status = excluded.status, executor = excluded.executor, attempt = excluded.attempt,
    earlier_attempts = excluded.earlier_attempts, reason = excluded.reason, cause_name = excluded.cause_name,
    cause_idx = excluded.cause_idx, failure = excluded.failure, exit_code = excluded.exit_code,
    dispatched_at = excluded.dispatched_at, started_at = excluded.started_at, finished_at = excluded.finished_at,
    retry_at = excluded.retry_at, output_key = excluded.output_key, output_size = excluded.output_size,
    output = excluded.output, instances = excluded.instances, item = excluded.item, cache_key = excluded.cache_key,
    changed = excluded.changed;

-- name: write_attempts
INSERT INTO ork.attempts (run_id, ordinal, idx, number, name, status, executor, pool, external_name, token_hash,
                          dispatched_at, started_at, finished_at, exit_code, failure, closing, closing_since, seq,
                          seen_at, waits_for, is_waiting)
SELECT * FROM unnest(
    $1::text[], $2::integer[], $3::integer[], $4::integer[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
    $10::text[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[], $14::bigint[], $15::text[], $16::text[],
    $17::timestamptz[], $18::bigint[], $19::timestamptz[], $20::text[], $21::boolean[])
ON CONFLICT (run_id, ordinal, idx, number) DO UPDATE SET
    status = excluded.status, executor = excluded.executor, pool = excluded.pool,
    external_name = excluded.external_name, token_hash = excluded.token_hash,
    dispatched_at = excluded.dispatched_at, started_at = excluded.started_at, finished_at = excluded.finished_at,
    exit_code = excluded.exit_code, failure = excluded.failure, closing = excluded.closing,
    closing_since = excluded.closing_since, seq = excluded.seq, seen_at = excluded.seen_at,
    waits_for = excluded.waits_for, is_waiting = excluded.is_waiting;

-- name: finish_commands
UPDATE ork.commands AS c SET done_at = n.done_at
FROM unnest($1::bigint[], $2::text[], $3::timestamptz[]) AS n (id, run_id, done_at)
WHERE c.id = n.id AND c.run_id = n.run_id;

-- name: write_alerts
INSERT INTO ork.alerts (kind, workflow, run_id, task, idx, failure, raised_at, due_at, tries, sent)
SELECT n.kind, r.workflow, n.run_id, n.task, n.idx, n.failure, n.raised_at, n.raised_at, 0, '{}'
FROM unnest($1::text[], $2::text[], $3::text[], $4::integer[], $5::text[], $6::timestamptz[]) WITH ORDINALITY
    AS n (kind, run_id, task, idx, failure, raised_at, place)
JOIN ork.runs AS r ON r.id = n.run_id
ORDER BY n.place;

-- name: count_active
-- A walk over the index of active attempts: it costs what is active now.
SELECT executor, pool, count(*) FROM ork.attempts
WHERE status IN ('dispatched', 'running') AND NOT is_waiting
GROUP BY executor, pool;

-- name: list_rates
SELECT name, count, seconds FROM ork.rates ORDER BY name;

-- name: add_buckets
-- A bucket that was never used is full. Made before it is locked, so that two cannot both find it missing.
INSERT INTO ork.buckets (name, tokens, at)
SELECT name, tokens, coalesce($3::timestamptz, clock_timestamp())
FROM unnest($1::text[], $2::float8[]) AS n (name, tokens) ORDER BY name COLLATE "C"
ON CONFLICT (name) DO NOTHING;

-- name: lock_buckets
SELECT name, tokens, extract(epoch FROM coalesce($2::timestamptz, clock_timestamp()) - at)::float8 FROM ork.buckets
WHERE name = ANY ($1::text[])
ORDER BY name FOR UPDATE;

-- name: write_buckets
UPDATE ork.buckets AS b SET tokens = n.tokens, at = coalesce($3::timestamptz, clock_timestamp())
FROM unnest($1::text[], $2::float8[]) AS n (name, tokens)
WHERE b.name = n.name;

-- name: add_recoveries
-- The run before it is the newest earlier one that came to an end of its own: one look at the index for each end.
INSERT INTO ork.alerts (kind, workflow, run_id, raised_at, due_at, tries, sent)
SELECT 'recovery', r.workflow, r.id, $2, $2, 0, '{}'
FROM unnest($1::text[]) WITH ORDINALITY AS n (id, place) JOIN ork.runs AS r ON r.id = n.id
WHERE EXISTS (SELECT 1 FROM ork.alerts AS a WHERE a.run_id = r.id AND a.run_id IS NOT NULL AND a.kind = 'run')
   OR 'failed' = (
    SELECT earlier.status FROM unnest(ARRAY ['failed', 'success']) AS ending CROSS JOIN LATERAL (
        SELECT b.status, b.created_at, b.id FROM ork.runs AS b
        WHERE b.workflow = r.workflow AND b.status = ending AND (b.created_at, b.id) < (r.created_at, r.id)
        ORDER BY b.created_at DESC, b.id DESC LIMIT 1) AS earlier
    ORDER BY earlier.created_at DESC, earlier.id DESC LIMIT 1)
ORDER BY n.place;
