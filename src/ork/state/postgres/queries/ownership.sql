-- name: introduce
INSERT INTO ork.schedulers (id, identity, kind, started_at, lease_until)
VALUES ($1, $2, $3, $4, coalesce($5::timestamptz, clock_timestamp()) + make_interval(secs => $6))
ON CONFLICT (id) DO UPDATE SET
    identity = excluded.identity, kind = excluded.kind, started_at = excluded.started_at,
    lease_until = excluded.lease_until;

-- name: renew
UPDATE ork.schedulers SET lease_until = coalesce($2::timestamptz, clock_timestamp()) + make_interval(secs => $3)
WHERE id = $1;

-- name: end_leases
WITH dead AS (SELECT id FROM ork.schedulers WHERE id = ANY ($1::text[]) ORDER BY id FOR UPDATE)
UPDATE ork.schedulers AS s SET lease_until = '-infinity' FROM dead WHERE s.id = dead.id;

-- name: forget_schedulers
DELETE FROM ork.schedulers WHERE id = ANY ($1::text[]);

-- name: disown
-- Rows are locked in the order of their ids, here as everywhere: so no two transactions wait for each other.
WITH owned AS (
    SELECT id FROM ork.runs WHERE owner = ANY ($1::text[]) AND owner IS NOT NULL ORDER BY id FOR UPDATE)
UPDATE ork.runs AS r SET owner = NULL FROM owned WHERE r.id = owned.id;

-- name: release_runs
WITH owned AS (SELECT id FROM ork.runs WHERE id = ANY ($2::text[]) AND owner = $1 ORDER BY id FOR UPDATE)
UPDATE ork.runs AS r SET owner = NULL FROM owned WHERE r.id = owned.id;

-- name: look_for_work
-- Read before anything is locked, so that a look that finds nothing disturbs nobody.
SELECT
    EXISTS (SELECT 1 FROM ork.schedulers WHERE id = $1 AND lease_until > coalesce($2::timestamptz, clock_timestamp())),
    EXISTS (SELECT 1 FROM ork.runs WHERE attention AND owner IS NULL),
    EXISTS (SELECT 1 FROM ork.schedulers WHERE lease_until <= coalesce($2::timestamptz, clock_timestamp()));

-- name: lock_leases
-- Our own row and those whose lease has run out, in one order for all: ours is locked so that nobody takes us for
-- dead while we claim, theirs so that they cannot renew while we take over.
SELECT id, lease_until > coalesce($2::timestamptz, clock_timestamp()) FROM ork.schedulers
WHERE id = $1 OR lease_until <= coalesce($2::timestamptz, clock_timestamp())
ORDER BY id FOR UPDATE;

-- name: lock_limited_workflows
-- Those that limit their runs and have some waiting: who claims for the same workflow waits here.
SELECT w.name FROM ork.workflows AS w
WHERE w.max_active_runs IS NOT NULL AND EXISTS (
    SELECT 1 FROM ork.runs AS r
    WHERE r.attention AND r.owner IS NULL AND r.status = 'pending' AND r.workflow = w.name)
ORDER BY w.name FOR NO KEY UPDATE OF w;

-- name: room_in_workflows
-- How many more runs each may have active.
SELECT w.name, w.max_active_runs - (
    SELECT count(*) FROM ork.runs AS r
    WHERE r.workflow = w.name
      AND (r.status IN ('running', 'paused') OR (r.status = 'pending' AND r.owner IS NOT NULL)))
FROM ork.workflows AS w
WHERE w.name = ANY ($1::text[]) AND w.max_active_runs IS NOT NULL;

-- name: claimable_runs
-- A queued run (pending, not to be cancelled) of a limited workflow is taken only if that has room and is locked by us;
-- otherwise it is passed over, not waited behind. So is a run that somebody else is about to claim.
SELECT r.id, r.workflow, r.status = 'pending', r.cancel_requested_at IS NOT NULL
FROM ork.runs AS r
WHERE r.attention AND r.owner IS NULL
  AND NOT (r.status = 'pending' AND r.cancel_requested_at IS NULL AND EXISTS (
      SELECT 1 FROM ork.workflows AS w
      WHERE w.name = r.workflow AND w.max_active_runs IS NOT NULL AND NOT w.name = ANY ($1::text[])))
ORDER BY r.priority DESC, r.created_at, r.id
LIMIT $2
FOR UPDATE OF r SKIP LOCKED;

-- name: take_runs
UPDATE ork.runs SET owner = $1, epoch = epoch + 1 WHERE id = ANY ($2::text[]);

-- name: commands_for
-- From the waiting commands (few) to their runs.
SELECT c.id, c.run_id, c.kind, c.asked_by, c.task, c.everything, c.comment
FROM ork.commands AS c JOIN ork.runs AS r ON r.id = c.run_id
WHERE c.done_at IS NULL AND r.owner = $1
ORDER BY c.id;

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
       a.waits_for
FROM ork.tasks AS t JOIN ork.attempts AS a
    ON a.run_id = t.run_id AND a.ordinal = t.ordinal AND a.idx = t.idx AND a.number = t.attempt
WHERE t.run_id = ANY ($1::text[]) AND t.status IN ('dispatched', 'running')
ORDER BY t.run_id, t.ordinal, t.idx;

-- name: list_schedulers
SELECT s.id, s.identity, s.kind, s.started_at,
       CASE WHEN s.lease_until = '-infinity' THEN '-infinity'::float8
            ELSE extract(epoch FROM s.lease_until - coalesce($1::timestamptz, clock_timestamp()))::float8 END,
       (SELECT count(*) FROM ork.runs AS r WHERE r.owner = s.id)
FROM ork.schedulers AS s
ORDER BY s.started_at, s.id;

-- name: get_owner
SELECT owner FROM ork.runs WHERE id = $1;
