-- name: list_schedules
SELECT name, version, schedule, fires, next_fire FROM workflows WHERE schedule IS NOT NULL ORDER BY name;

-- name: active_schedules
SELECT name, version, schedule, fires, next_fire FROM workflows WHERE fires = 1 ORDER BY name;

-- name: look_ahead
SELECT
    EXISTS (SELECT 1 FROM runs WHERE attention = 1 AND owner IS NULL) OR EXISTS (SELECT 1 FROM runs WHERE owner IS NOT NULL),
    (SELECT min(due_at) FROM alerts INDEXED BY alerts_due WHERE due_at IS NOT NULL),
    (SELECT min(coalesce(held_until, due_at)) FROM locations WHERE name IN (SELECT value FROM json_each(:locations)));

-- name: due_schedules
-- NULL sorts first, so both kinds are one range of the small index.
SELECT name, version, schedule, fires, next_fire FROM workflows INDEXED BY workflows_due
WHERE fires = 1 AND (next_fire IS NULL OR next_fire <= :now)
ORDER BY name;

-- name: next_fire_at
SELECT min(next_fire) FROM workflows INDEXED BY workflows_due WHERE fires = 1 AND next_fire > :after;

-- name: is_expected_fire
SELECT 1 FROM workflows WHERE name = :workflow AND fires = 1 AND next_fire IS :expected;

-- name: move_next_fire
UPDATE workflows SET next_fire = :next_fire WHERE name = :workflow;

-- name: add_notice
INSERT INTO alerts (kind, workflow, run_id, task, idx, failure, detail, raised_at, due_at, tries, sent)
VALUES (:kind, :workflow, :run, NULL, NULL, NULL, :detail, :now, :now, 0, '[]');

-- name: add_recovery
-- The run before it is the newest earlier one that came to an end of its own: one look at the index for each end.
INSERT INTO alerts (kind, workflow, run_id, raised_at, due_at, tries, sent)
SELECT 'recovery', :workflow, :run, :now, :now, 0, '[]'
WHERE EXISTS (SELECT 1 FROM alerts WHERE run_id = :run AND kind = 'run')
   OR 'failed' = (
    SELECT status FROM (
        SELECT * FROM (
            SELECT status, created_at, id FROM runs
            WHERE workflow = :workflow AND status = 'failed' AND (created_at, id) < (:created_at, :run)
            ORDER BY created_at DESC, id DESC LIMIT 1)
        UNION ALL
        SELECT * FROM (
            SELECT status, created_at, id FROM runs
            WHERE workflow = :workflow AND status = 'success' AND (created_at, id) < (:created_at, :run)
            ORDER BY created_at DESC, id DESC LIMIT 1))
    ORDER BY created_at DESC, id DESC LIMIT 1);

-- name: due_alerts
SELECT id, kind, workflow, raised_at, run_id, task, idx, failure, detail, tries, sent
FROM alerts INDEXED BY alerts_due
WHERE due_at <= :now
ORDER BY due_at, id
LIMIT :limit;

-- name: hold_alert
UPDATE alerts SET due_at = ?, tries = tries + 1 WHERE id = ?;

-- name: settle_alert
UPDATE alerts SET
    due_at = :retry_at, error = :error,
    sent = (SELECT json_group_array(value) FROM (
        SELECT value FROM json_each(iif(json_valid(alerts.sent), alerts.sent, '[]')) UNION SELECT value FROM json_each(:sent) ORDER BY value))
WHERE id = :id;

-- name: unsent_alerts
SELECT error, due_at, id, kind, workflow, raised_at, run_id, task, idx, failure, detail, tries, sent
FROM alerts INDEXED BY alerts_unsent
WHERE error IS NOT NULL
ORDER BY id DESC
LIMIT :limit;

-- name: next_alert_at
SELECT min(due_at) FROM alerts INDEXED BY alerts_due WHERE due_at IS NOT NULL;

-- name: prunable_runs
-- By the index of listings, oldest first; a run cannot have ended before it was created. Where the end is damaged, the
-- beginning counts alone.
SELECT r.created_at, r.id FROM runs AS r
WHERE r.status = :status AND r.created_at < :before AND r.owner IS NULL AND r.attention = 0
  AND (r.finished_at < :before OR r.finished_at IS NULL OR julianday(r.finished_at) IS NULL)
  AND (:keep_last = 0 OR (
      SELECT count(*) FROM (
          SELECT 1 FROM runs AS newer
          WHERE newer.workflow = r.workflow AND (newer.created_at, newer.id) > (r.created_at, r.id)
          LIMIT :keep_last)) >= :keep_last)
ORDER BY r.created_at, r.id
LIMIT :limit;

-- name: forget_run
DELETE FROM runs WHERE id = ?;

-- name: forget_tasks
DELETE FROM tasks WHERE run_id = ?;

-- name: forget_attempts
DELETE FROM attempts WHERE run_id = ?;

-- name: forget_commands
-- A run with a command that waits is not forgotten.
DELETE FROM commands WHERE run_id = ? AND done_at IS NOT NULL;

-- name: forget_alerts
DELETE FROM alerts WHERE run_id = ? AND run_id IS NOT NULL;

-- name: forget_told
DELETE FROM alerts WHERE run_id IS NULL AND due_at IS NULL AND raised_at < :before;

-- name: note_leftover
INSERT OR IGNORE INTO leftovers (run_id) VALUES (?);

-- name: list_leftovers
SELECT run_id FROM leftovers ORDER BY run_id LIMIT :limit;

-- name: drop_leftover
DELETE FROM leftovers WHERE run_id = ?;
