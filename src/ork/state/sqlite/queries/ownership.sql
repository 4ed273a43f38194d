-- name: register
INSERT INTO schedulers (id, identity, kind, started_at, lease_boot, lease_until)
VALUES (:id, :identity, :kind, :now, :boot, :until)
ON CONFLICT (id) DO UPDATE SET
    identity = excluded.identity, kind = excluded.kind, started_at = excluded.started_at,
    lease_boot = excluded.lease_boot, lease_until = excluded.lease_until;

-- name: renew
UPDATE schedulers SET lease_boot = :boot, lease_until = :until WHERE id = :id;

-- name: note_fallbacks
UPDATE schedulers SET notes = :notes WHERE id = :id;

-- name: end_lease
-- An empty boot id is no boot's: the lease has run out, whatever the clock says.
UPDATE schedulers SET lease_boot = '' WHERE id = ?;

-- name: forget_scheduler
DELETE FROM schedulers WHERE id = ?;

-- name: forget_all_schedulers
DELETE FROM schedulers;

-- name: release_everything
UPDATE runs SET owner = NULL WHERE owner IS NOT NULL;

-- name: release_all
UPDATE runs SET owner = NULL WHERE owner = ?;

-- name: is_registered
SELECT 1 FROM schedulers WHERE id = :id;

-- name: owns_one_of
SELECT 1 FROM runs WHERE id IN (SELECT value FROM json_each(:runs)) AND owner = :owner LIMIT 1;

-- name: release_run
UPDATE runs SET owner = NULL WHERE owner = ? AND id = ?;

-- name: look_for_work
-- Read before the write lock is asked for, so that a look that finds nothing disturbs nobody.
SELECT
    EXISTS (SELECT 1 FROM schedulers WHERE id = :id AND lease_boot = :boot AND lease_until > :now) AS holds_lease,
    EXISTS (SELECT 1 FROM runs WHERE attention = 1 AND owner IS NULL) AS has_free_runs,
    EXISTS (SELECT 1 FROM schedulers WHERE lease_boot <> :boot OR lease_until <= :now) AS has_lapsed_owners;

-- name: lapsed_schedulers
SELECT id FROM schedulers WHERE lease_boot <> :boot OR lease_until <= :now ORDER BY id;

-- name: room_in_workflows
-- How many more runs each limited workflow may have active. One that is set aside takes nobody's place.
SELECT w.name, w.max_active_runs - (
    SELECT count(*) FROM runs AS r
    WHERE r.workflow = w.name
      AND (r.status IN ('running', 'paused') OR (r.status = 'pending' AND r.owner IS NOT NULL))
      AND NOT EXISTS (SELECT 1 FROM quarantine AS q WHERE q.kind = 'run' AND q.id = r.id))
FROM workflows AS w
WHERE w.max_active_runs IS NOT NULL;

-- name: claimable_runs
-- A queued run (pending, not to be cancelled) of a workflow that has no room is passed over, not waited behind.
SELECT id, workflow, status = 'pending' AS is_pending, cancel_requested_at IS NOT NULL AS is_to_be_cancelled
FROM runs
WHERE attention = 1 AND owner IS NULL
  AND NOT (status = 'pending' AND cancel_requested_at IS NULL
           AND workflow IN (SELECT value FROM json_each(:full_workflows)))
ORDER BY priority DESC, created_at, id
LIMIT :room;

-- name: claimable_of_these
-- The same for a scheduler that works on some runs only: these, their sub-workflows, and those with an attempt that is
-- active and that nobody looks after.
SELECT r.id, r.workflow, r.status = 'pending' AS is_pending, r.cancel_requested_at IS NOT NULL AS is_to_be_cancelled
FROM runs AS r
WHERE r.attention = 1 AND r.owner IS NULL
  AND NOT (r.status = 'pending' AND r.cancel_requested_at IS NULL
           AND r.workflow IN (SELECT value FROM json_each(:full_workflows)))
  AND (r.id IN (SELECT value FROM json_each(:only))
       OR substr(r.parent, 1, instr(r.parent, '/') - 1) IN (SELECT value FROM json_each(:only))
       OR (r.epoch > 0 AND EXISTS (
           SELECT 1 FROM attempts AS a WHERE a.run_id = r.id AND a.status IN ('dispatched', 'running'))))
ORDER BY r.priority DESC, r.created_at, r.id
LIMIT :room;

-- name: runs_of_owner
SELECT id FROM runs WHERE owner = :owner;

-- name: take_run
UPDATE runs SET owner = ?, epoch = epoch + 1 WHERE id = ?;

-- name: commands_for
-- From the waiting commands (few) to their runs, never from all the runs of an owner.
SELECT c.id, c.run_id, c.kind, c.asked_by, c.task, c.everything, c.comment
FROM commands AS c INDEXED BY commands_waiting CROSS JOIN runs AS r ON r.id = c.run_id
WHERE c.done_at IS NULL AND r.owner = :owner
ORDER BY c.id;

-- name: current_attempts
-- The attempts a new owner must look after.
SELECT a.run_id, a.name, a.idx, a.number, a.status, a.executor, a.pool, a.external_name, a.token_hash,
       a.dispatched_at, a.started_at, a.finished_at, a.exit_code, a.failure, a.closing, a.closing_since, a.seq, a.seen_at,
       a.waits_for, a.group_id, a.group_index, a.parallelism
FROM tasks AS t CROSS JOIN attempts AS a
    ON a.run_id = t.run_id AND a.ordinal = t.ordinal AND a.idx = t.idx AND a.number = t.attempt
WHERE t.run_id = :run AND t.status IN ('dispatched', 'running')
ORDER BY t.ordinal, t.idx;

-- name: list_schedulers
SELECT s.id, s.identity, s.kind, s.started_at, s.lease_boot, s.lease_until,
       (SELECT count(*) FROM runs AS r WHERE r.owner = s.id), s.notes
FROM schedulers AS s
ORDER BY s.started_at, s.id;

-- name: get_starter
SELECT started_by FROM runs WHERE id = :run;

-- name: get_key
SELECT key FROM runs WHERE id = :run;

-- name: get_owner
SELECT owner FROM runs WHERE id = :run;

-- name: note_heartbeat
UPDATE attempts SET heard_seq = ?, heard_boot = ?, heard_at = ?
WHERE run_id = ? AND name = ? AND idx = ? AND number = ? AND status IN ('dispatched', 'running')
  AND (heard_seq IS NULL OR heard_seq < ? OR (? < 0 AND heard_seq <> ?));

-- name: heartbeats_of_run
SELECT run_id, name, idx, number, heard_seq, heard_at FROM attempts
WHERE run_id = :run AND status IN ('dispatched', 'running') AND heard_boot = :boot
ORDER BY ordinal, idx, number;

-- name: set_control
INSERT INTO controls (target, mode, asked_by, asked_at, reason) VALUES (:target, :mode, :by, :at, :reason)
ON CONFLICT (target) DO UPDATE SET
    mode = excluded.mode, asked_by = excluded.asked_by, asked_at = excluded.asked_at, reason = excluded.reason;

-- name: clear_control
DELETE FROM controls WHERE target = :target;

-- name: list_controls
SELECT target, mode, asked_by, asked_at, reason FROM controls ORDER BY target;

-- name: runs_with_commands
SELECT DISTINCT run_id FROM commands INDEXED BY commands_waiting WHERE done_at IS NULL ORDER BY run_id;
