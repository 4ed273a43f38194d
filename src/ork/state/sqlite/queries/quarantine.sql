-- name: note_quarantined
INSERT INTO quarantine (kind, id, reason, since) VALUES (:kind, :id, :reason, :now)
ON CONFLICT (kind, id) DO UPDATE SET reason = excluded.reason, since = excluded.since;

-- name: forget_quarantined
DELETE FROM quarantine WHERE kind = ? AND id = ?;

-- name: list_quarantined
SELECT kind, id, reason, since FROM quarantine ORDER BY kind, id LIMIT :limit;

-- name: cancel_is_pending
SELECT workflow, status IN ('success', 'failed', 'cancelled') AS is_final, EXISTS (
    SELECT 1 FROM commands AS c WHERE c.run_id = r.id AND c.kind = 'cancel' AND c.done_at IS NULL) AS is_to_be_cancelled
FROM runs AS r
WHERE r.id = :run AND r.owner = :owner AND r.epoch = :epoch;

-- name: set_run_aside
UPDATE runs SET
    owner = NULL, attention = 0, changed = :changed, note = :note, status = coalesce(:status, status),
    finished_at = iif(:status = 'cancelled', :now, finished_at)
WHERE id = :run;

-- name: finish_commands
UPDATE commands SET done_at = :now WHERE run_id = :run AND done_at IS NULL;

-- name: active_attempts
SELECT run_id, name, idx, number, status, executor, pool, external_name, token_hash, dispatched_at, started_at,
       finished_at, exit_code, failure, closing, closing_since, seq, seen_at, waits_for, group_id, group_index, parallelism
FROM attempts WHERE run_id = :run AND status IN ('dispatched', 'running') ORDER BY ordinal, idx, number;

-- name: free_slots
-- Nobody watches these attempts any more: they take no slot until somebody does again.
UPDATE attempts SET is_waiting = 1 WHERE run_id = :run AND status IN ('dispatched', 'running');

-- name: take_slots_again
UPDATE attempts SET is_waiting = waits_for IS NOT NULL WHERE run_id = :run AND status IN ('dispatched', 'running');

-- name: cancel_tasks
UPDATE tasks SET status = 'cancelled', reason = :note, finished_at = :now, retry_at = NULL, changed = :changed
WHERE run_id = :run AND status NOT IN ('success', 'failed', 'skipped', 'cancelled');

-- name: cancel_attempts
UPDATE attempts SET status = 'cancelled', finished_at = :now WHERE run_id = :run AND status IN ('dispatched', 'running');

-- name: set_notice_aside
-- It is not sent; `error` keeps it among those that could not be.
UPDATE alerts SET due_at = NULL, error = :error WHERE id = :id;

-- name: notices_due_at
SELECT id FROM alerts WHERE due_at = :due_at;

-- name: reset_location
-- All of it but the source was found out by looking: the next look writes it anew.
UPDATE locations SET
    due_at = :now, held_until = NULL, looked_at = NULL, changed_at = NULL, code = 'ORK813', error = :error, output = NULL
WHERE name = :name;
