-- name: note_quarantined
INSERT INTO ork.quarantine AS q (kind, id, reason, since) VALUES ($1, $2, $3, $4)
ON CONFLICT (kind, id) DO UPDATE SET reason = excluded.reason, since = excluded.since;

-- name: forget_quarantined
DELETE FROM ork.quarantine WHERE kind = $1 AND id = ANY ($2::text[]);

-- name: list_quarantined
SELECT kind, id, reason, since FROM ork.quarantine ORDER BY kind, id LIMIT $1;

-- name: lock_claimed_run
SELECT workflow, status IN ('success', 'failed', 'cancelled') AS is_final FROM ork.runs
WHERE id = $1 AND owner = $2 AND epoch = $3
FOR UPDATE;

-- name: cancel_is_pending
SELECT EXISTS (SELECT 1 FROM ork.commands WHERE run_id = $1 AND kind = 'cancel' AND done_at IS NULL);

-- name: set_run_aside
UPDATE ork.runs SET
    owner = NULL, attention = false, changed = $2, note = $3, status = coalesce($4, status),
    finished_at = CASE WHEN $4 = 'cancelled' THEN $5 ELSE finished_at END
WHERE id = $1;

-- name: finish_commands
UPDATE ork.commands SET done_at = $2 WHERE run_id = $1 AND done_at IS NULL;

-- name: finish_command
UPDATE ork.commands SET done_at = $2 WHERE id = $1;

-- name: active_attempts
SELECT run_id, name, idx, number, status, executor, pool, external_name, token_hash, dispatched_at, started_at,
       finished_at, exit_code, failure, closing, closing_since, seq, seen_at, waits_for, group_id, group_index, parallelism
FROM ork.attempts WHERE run_id = $1 AND active ORDER BY ordinal, idx, number;

-- name: free_slots
-- Nobody watches these attempts any more: they take no slot until somebody does again.
UPDATE ork.attempts SET is_waiting = true WHERE run_id = $1 AND active;

-- name: take_slots_again
UPDATE ork.attempts SET is_waiting = waits_for IS NOT NULL WHERE run_id = $1 AND active;

-- name: cancel_tasks
WITH cancelled AS (
    UPDATE ork.tasks SET status = 'cancelled', reason = $3, finished_at = $4, retry_at = NULL
    WHERE run_id = $1 AND status NOT IN ('success', 'failed', 'skipped', 'cancelled')
    RETURNING ordinal, idx)
INSERT INTO ork.task_changes (run_id, changed, ordinals, idxs)
SELECT $1, $2, array_agg(ordinal), array_agg(idx) FROM cancelled HAVING count(*) > 0;

-- name: cancel_attempts
UPDATE ork.attempts SET status = 'cancelled', finished_at = $2 WHERE run_id = $1 AND active;


-- name: set_notice_aside
-- It is not sent; `error` keeps it among those that could not be.
UPDATE ork.alerts SET due_at = NULL, error = $2 WHERE id = $1;

-- name: reset_location
-- All of it but the source was found out by looking: the next look writes it anew.
UPDATE ork.locations SET
    due_at = $2, held_until = $3, looked_at = NULL, changed_at = NULL, code = 'ORK813', error = $4, output = NULL
WHERE name = $1;
