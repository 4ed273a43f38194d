-- name: create_runs
SELECT ork.create_runs($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14);

-- name: known_versions
SELECT id FROM ork.versions WHERE id = ANY ($1::text[]);

-- name: add_runs
-- Any of the three unique constraints (id, key, slot) leaves a run out: those that were written are the answer.
-- In one order for all, so that no two transactions wait for each other's keys.
INSERT INTO ork.runs (id, workflow, version, status, trigger, params, created_at, scheduled_for, round, priority, key,
                      fresh, parent, started_by, epoch, attention, changed)
SELECT id, workflow, version, 'pending', trigger, params, $12, scheduled_for, 1, priority, key, fresh, parent, started_by,
       0, true, $13
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::integer[], $8::text[],
            $9::boolean[], $10::text[], $11::text[]) WITH ORDINALITY
    AS n (id, workflow, version, trigger, params, scheduled_for, priority, key, fresh, parent, started_by, place)
ORDER BY workflow COLLATE "C", key COLLATE "C", scheduled_for, place
ON CONFLICT DO NOTHING
RETURNING id;

-- name: find_by_key
SELECT id FROM ork.runs WHERE workflow = $1 AND key = $2 AND key IS NOT NULL;

-- name: find_by_slot
SELECT id FROM ork.runs
WHERE workflow = $1 AND scheduled_for = $2
  AND scheduled_for IS NOT NULL AND trigger IN ('schedule', 'backfill');

-- name: find_scheduled
SELECT r.id, r.workflow, r.version, r.status, r.trigger, '{}' AS params, r.created_at, r.scheduled_for, r.started_at,
       r.finished_at, r.error, r.round, r.priority, r.cancel_requested_at, r.note, r.fresh, r.parent,
       r.epoch, r.changed
FROM unnest($2::timestamptz[]) AS wanted (time) JOIN ork.runs AS r ON r.workflow = $1 AND r.scheduled_for = wanted.time
WHERE r.scheduled_for IS NOT NULL AND r.trigger IN ('schedule', 'backfill');

-- name: runs_by_id
-- In the order of the given ids.
SELECT r.id, r.workflow, r.version, r.status, r.trigger, r.params, r.created_at, r.scheduled_for, r.started_at,
       r.finished_at, r.error, r.round, r.priority, r.cancel_requested_at, r.note, r.fresh, r.parent,
       r.epoch, r.changed
FROM unnest($1::text[]) WITH ORDINALITY AS wanted (id, place) JOIN ork.runs AS r ON r.id = wanted.id
ORDER BY wanted.place;

-- name: listed_runs
-- As runs_by_id, without the params: each may be a megabyte, and a page of them would be.
SELECT r.id, r.workflow, r.version, r.status, r.trigger, '{}' AS params, r.created_at, r.scheduled_for, r.started_at,
       r.finished_at, r.error, r.round, r.priority, r.cancel_requested_at, r.note, r.fresh, r.parent,
       r.epoch, r.changed
FROM unnest($1::text[]) WITH ORDINALITY AS wanted (id, place) JOIN ork.runs AS r ON r.id = wanted.id
ORDER BY wanted.place;

-- name: lock_run
SELECT id FROM ork.runs WHERE id = $1 FOR UPDATE;

-- name: add_command
INSERT INTO ork.commands (run_id, kind, asked_by, task, everything, comment, asked_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
RETURNING id;

-- name: call_for_attention
-- A command makes the run claimable, finished or not; a cancel stands from its first request on.
UPDATE ork.runs SET
    attention = true,
    changed = $2,
    cancel_requested_at = CASE WHEN $3 THEN coalesce(cancel_requested_at, $4) ELSE cancel_requested_at END
WHERE id = $1;

-- name: pending_commands
SELECT id, run_id, kind, asked_by, task, everything, comment
FROM ork.commands
WHERE run_id = $1 AND done_at IS NULL
ORDER BY id;
