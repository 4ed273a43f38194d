-- name: list_schedules
SELECT name, version, schedule, fires, next_fire FROM ork.workflows WHERE schedule IS NOT NULL ORDER BY name;

-- name: look_ahead
-- One request: a row for each schedule that is on, or one without any.
SELECT
    EXISTS (SELECT 1 FROM ork.runs WHERE attention AND owner IS NULL) OR EXISTS (SELECT 1 FROM ork.runs WHERE owner IS NOT NULL),
    (SELECT min(due_at) FROM ork.alerts WHERE due_at IS NOT NULL AND due_at = ork.readable(due_at)),
    (SELECT min(coalesce(held_until, due_at)) FROM ork.locations WHERE name = ANY ($1::text[])),
    w.name, w.version, w.schedule, w.fires, w.next_fire
FROM (SELECT 1) AS always LEFT JOIN ork.workflows AS w ON w.fires
ORDER BY w.name;

-- name: due_schedules
SELECT name, version, schedule, fires, next_fire FROM ork.workflows
WHERE fires AND (next_fire IS NULL OR next_fire <= $1)
ORDER BY name;

-- name: next_fire_at
-- A time that no client can decode must not hide the others.
SELECT min(next_fire) FROM ork.workflows WHERE fires AND next_fire > $1 AND next_fire = ork.readable(next_fire);

-- name: expect_fire
-- Of any number of callers one gets the lock while this is still true.
SELECT name FROM ork.workflows
WHERE name = $1 AND fires AND next_fire IS NOT DISTINCT FROM $2
FOR NO KEY UPDATE;

-- name: move_next_fire
UPDATE ork.workflows SET next_fire = $2 WHERE name = $1;

-- name: add_missed
INSERT INTO ork.alerts (kind, workflow, detail, raised_at, due_at, tries, sent)
VALUES ('missed', $1, $2, $3, $3, 0, '{}');

-- name: take_alerts
-- What somebody else is taking is skipped. They are due again later unless settled: the taker may die.
WITH due AS (
    SELECT id FROM ork.alerts WHERE due_at <= $1 AND due_at IS NOT NULL
    ORDER BY due_at, id LIMIT $2 FOR UPDATE SKIP LOCKED)
UPDATE ork.alerts AS a SET due_at = $1 + make_interval(secs => $3), tries = a.tries + 1
FROM due WHERE a.id = due.id
RETURNING a.id, a.kind, a.workflow, ork.readable(a.raised_at), a.run_id, a.task, a.idx, a.failure, a.detail, a.tries, a.sent;

-- name: settle_alert
UPDATE ork.alerts SET
    due_at = $3, error = $4,
    sent = ARRAY (SELECT name FROM unnest(sent || $2::text[]) AS name GROUP BY name ORDER BY name COLLATE "C")
WHERE id = $1;

-- name: unsent_alerts
SELECT error, due_at, id, kind, workflow, raised_at, run_id, task, idx, failure, detail, tries, sent
FROM ork.alerts WHERE error IS NOT NULL ORDER BY id DESC LIMIT $1;

-- name: next_alert_at
SELECT min(due_at) FROM ork.alerts WHERE due_at IS NOT NULL AND due_at = ork.readable(due_at);

-- name: prunable_runs
-- By the index of listings, oldest first; a run cannot have ended before it was created. Where the end is damaged, the
-- beginning counts alone.
SELECT old.id FROM unnest($4::text[]) AS ending CROSS JOIN LATERAL (
    SELECT r.id, r.created_at FROM ork.runs AS r
    WHERE r.status = ending AND r.created_at < $1 AND r.owner IS NULL AND NOT r.attention
      AND (r.finished_at < $1 OR r.finished_at IS NULL OR ork.readable(r.finished_at) <> r.finished_at)
      AND ($3::integer = 0 OR $3 <= (
          SELECT count(*) FROM (
              SELECT 1 FROM ork.runs AS newer
              WHERE newer.workflow = r.workflow AND (newer.created_at, newer.id) > (r.created_at, r.id)
              LIMIT $3) AS newest))
    ORDER BY r.created_at, r.id
    LIMIT $2) AS old
ORDER BY old.created_at, old.id
LIMIT $2;

-- name: lock_prunable
-- Those that are still at rest; who is being worked on is left for the next time.
SELECT id FROM ork.runs WHERE id = ANY ($1::text[]) AND owner IS NULL AND NOT attention
ORDER BY id FOR UPDATE SKIP LOCKED;

-- name: forget_runs
DELETE FROM ork.runs WHERE id = ANY ($1::text[]);

-- name: forget_tasks
DELETE FROM ork.tasks WHERE run_id = ANY ($1::text[]);

-- name: forget_task_changes
DELETE FROM ork.task_changes WHERE run_id = ANY ($1::text[]);

-- name: forget_attempts
DELETE FROM ork.attempts WHERE run_id = ANY ($1::text[]);

-- name: forget_commands
DELETE FROM ork.commands WHERE run_id = ANY ($1::text[]);

-- name: forget_alerts
DELETE FROM ork.alerts WHERE run_id = ANY ($1::text[]) AND run_id IS NOT NULL;

-- name: forget_told
DELETE FROM ork.alerts WHERE run_id IS NULL AND due_at IS NULL AND raised_at < $1;

-- name: note_leftovers
INSERT INTO ork.leftovers (run_id) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING;

-- name: list_leftovers
SELECT run_id FROM ork.leftovers ORDER BY run_id LIMIT $1;

-- name: drop_leftovers
-- In order of id, so that two who sweep at once wait for each other and never both.
DELETE FROM ork.leftovers WHERE run_id IN (
    SELECT run_id FROM ork.leftovers WHERE run_id = ANY ($1::text[]) ORDER BY run_id FOR UPDATE);
