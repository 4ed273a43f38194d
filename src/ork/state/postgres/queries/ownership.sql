-- name: register
-- Writes nothing if the terms ($7) differ from the recorded ones. Their row is locked: whoever replaces them waits for us,
-- and finds us.
WITH recorded AS (SELECT value FROM ork.meta WHERE name = 'shared_settings' AND $7::text IS NOT NULL FOR SHARE)
INSERT INTO ork.schedulers (id, identity, kind, started_at, lease_until)
SELECT $1, $2, $3, $4, coalesce($5::timestamptz, clock_timestamp()) + make_interval(secs => $6)
WHERE NOT EXISTS (SELECT 1 FROM recorded WHERE convert_from(value, 'UTF8')::json ->> 'terms' <> $7::text)
ON CONFLICT (id) DO UPDATE SET
    identity = excluded.identity, kind = excluded.kind, started_at = excluded.started_at,
    lease_until = excluded.lease_until;

-- name: renew
UPDATE ork.schedulers SET lease_until = coalesce($2::timestamptz, clock_timestamp()) + make_interval(secs => $3)
WHERE id = $1;

-- name: note_fallbacks
UPDATE ork.schedulers SET notes = $2 WHERE id = $1;

-- name: end_leases
WITH dead AS (SELECT id FROM ork.schedulers WHERE id = ANY ($1::text[]) ORDER BY id FOR UPDATE)
UPDATE ork.schedulers AS s SET lease_until = '-infinity' FROM dead WHERE s.id = dead.id;

-- name: forget_schedulers
SELECT ork.forget_schedulers($1::text[]);

-- name: forget_all_schedulers
SELECT ork.forget_schedulers(array(SELECT id FROM ork.schedulers ORDER BY id FOR UPDATE));

-- name: disown
-- Rows are locked in the order of their ids, here as everywhere: so no two transactions wait for each other.
WITH owned AS (
    SELECT id FROM ork.runs WHERE owner = ANY ($1::text[]) AND owner IS NOT NULL ORDER BY id FOR UPDATE)
UPDATE ork.runs AS r SET owner = NULL FROM owned WHERE r.id = owned.id;

-- name: is_registered
SELECT 1 FROM ork.schedulers WHERE id = $1;

-- name: release_runs
WITH owned AS (SELECT id FROM ork.runs WHERE id = ANY ($2::text[]) AND owner = $1 ORDER BY id FOR UPDATE)
UPDATE ork.runs AS r SET owner = NULL FROM owned WHERE r.id = owned.id;

-- name: claim
SELECT * FROM ork.claim($1, $2, $3, $4);

-- name: choose_runs
-- What the claim in this transaction is limited to (see `ork.pick_runs`): these runs, and those of owners whose lease has
-- run out, which it is about to take from them. The first word is no run: without any the list would be empty.
SELECT set_config('ork.only', array_to_string('{/}' || $1::text[] || ARRAY (
    SELECT r.id FROM ork.runs AS r
    WHERE r.owner IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM ork.schedulers AS s
        WHERE s.id = r.owner AND s.lease_until > coalesce($2::timestamptz, clock_timestamp()))), ','), true);

-- name: still_ours
SELECT id FROM unnest($2::text[], $3::bigint[]) AS n (id, epoch) JOIN ork.runs AS r USING (id, epoch) WHERE r.owner = $1;

-- name: tasks_of_runs
SELECT run_id, name, idx, status, executor, attempt, earlier_attempts, reason, cause_name, cause_idx, failure, exit_code,
       dispatched_at, started_at, finished_at, retry_at, output_key, output_size, output,
       instances, item, cache_key
FROM ork.tasks
WHERE run_id = ANY ($1::text[])
ORDER BY run_id, ordinal, idx;

-- name: current_attempts
-- The attempts a new owner must look after.
SELECT a.run_id, a.name, a.idx, a.number, a.status, a.executor, a.pool, a.external_name, a.token_hash,
       a.dispatched_at, a.started_at, a.finished_at, a.exit_code, a.failure, a.closing, a.closing_since, a.seq, a.seen_at,
       a.waits_for, a.group_id, a.group_index, a.parallelism
FROM ork.tasks AS t JOIN ork.attempts AS a
    ON a.run_id = t.run_id AND a.ordinal = t.ordinal AND a.idx = t.idx AND a.number = t.attempt
WHERE t.run_id = ANY ($1::text[]) AND t.status IN ('dispatched', 'running')
ORDER BY t.run_id, t.ordinal, t.idx;

-- name: list_schedulers
SELECT s.id, s.identity, s.kind, s.started_at,
       CASE WHEN s.lease_until = '-infinity' THEN '-infinity'::float8
            ELSE extract(epoch FROM s.lease_until - coalesce($1::timestamptz, clock_timestamp()))::float8 END,
       (SELECT count(*) FROM ork.runs AS r WHERE r.owner = s.id), s.notes
FROM ork.schedulers AS s
ORDER BY s.started_at, s.id;

-- name: get_starter
SELECT started_by FROM ork.runs WHERE id = $1;

-- name: get_key
SELECT key FROM ork.runs WHERE id = $1;

-- name: get_owner
SELECT owner FROM ork.runs WHERE id = $1;

-- name: note_heartbeats
-- Rows that somebody else has locked are skipped: they are being written, or noted, right now.
WITH noted AS (
    SELECT a.run_id, a.ordinal, a.idx, a.number, n.seq, n.age
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::float8[])
             AS n (run_id, name, idx, number, seq, age)
        JOIN ork.attempts AS a ON a.run_id = n.run_id AND a.name = n.name AND a.idx = n.idx AND a.number = n.number
    WHERE a.status IN ('dispatched', 'running')
      AND (a.heard_seq IS NULL OR a.heard_seq < n.seq OR (n.seq < 0 AND a.heard_seq <> n.seq))
    FOR UPDATE OF a SKIP LOCKED)
UPDATE ork.attempts AS a
SET heard_seq = n.seq, heard_at = coalesce($7::timestamptz, clock_timestamp()) - make_interval(secs => n.age)
FROM noted AS n
WHERE a.run_id = n.run_id AND a.ordinal = n.ordinal AND a.idx = n.idx AND a.number = n.number;

-- name: heartbeats_of_runs
SELECT run_id, name, idx, number, heard_seq,
       greatest(0, extract(epoch FROM coalesce($2::timestamptz, clock_timestamp()) - heard_at))::float8
FROM ork.attempts
WHERE run_id = ANY ($1::text[]) AND status IN ('dispatched', 'running') AND heard_at IS NOT NULL
ORDER BY run_id, ordinal, idx, number;

-- name: set_control
INSERT INTO ork.controls (target, mode, asked_by, asked_at, reason) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (target) DO UPDATE SET
    mode = excluded.mode, asked_by = excluded.asked_by, asked_at = excluded.asked_at, reason = excluded.reason;

-- name: clear_control
DELETE FROM ork.controls WHERE target = $1;

-- name: list_controls
SELECT target, mode, asked_by, asked_at, reason FROM ork.controls ORDER BY target COLLATE "C";

-- name: runs_with_commands
SELECT DISTINCT run_id FROM ork.commands WHERE done_at IS NULL ORDER BY run_id;
