-- name: add_run
-- Any of the three unique constraints (id, key, slot) makes this write nothing: the row count is the answer.
INSERT INTO runs (id, workflow, version, status, trigger, params, created_at, scheduled_for, round, priority, key,
                  fresh, parent, started_by, epoch, attention, changed)
VALUES (:id, :workflow, :version, 'pending', :trigger, :params, :now, :scheduled_for, 1, :priority, :key,
        :fresh, :parent, :started_by, 0, 1, :changed)
ON CONFLICT DO NOTHING;

-- name: find_by_key
SELECT id FROM runs WHERE workflow = :workflow AND key = :key AND key IS NOT NULL;

-- name: find_by_slot
SELECT id FROM runs
WHERE workflow = :workflow AND scheduled_for = :scheduled_for
  AND scheduled_for IS NOT NULL AND trigger IN ('schedule', 'backfill');

-- name: find_scheduled
SELECT r.id FROM json_each(:times) AS wanted CROSS JOIN runs AS r
WHERE r.workflow = :workflow AND r.scheduled_for = wanted.value
  AND r.scheduled_for IS NOT NULL AND r.trigger IN ('schedule', 'backfill');

-- name: runs_by_id
-- In the order of the given JSON list of ids.
SELECT r.id, r.workflow, r.version, r.status, r.trigger, r.params, r.created_at, r.scheduled_for, r.started_at,
       r.finished_at, r.error, r.round, r.priority, r.cancel_requested_at, r.note, r.fresh, r.parent,
       r.epoch, r.changed
FROM json_each(:ids) AS wanted CROSS JOIN runs AS r ON r.id = wanted.value
ORDER BY wanted.key;

-- name: listed_runs
-- As runs_by_id, without the params: each may be a megabyte, and a page of them would be.
SELECT r.id, r.workflow, r.version, r.status, r.trigger, '{}' AS params, r.created_at, r.scheduled_for, r.started_at,
       r.finished_at, r.error, r.round, r.priority, r.cancel_requested_at, r.note, r.fresh, r.parent,
       r.epoch, r.changed
FROM json_each(:ids) AS wanted CROSS JOIN runs AS r ON r.id = wanted.value
ORDER BY wanted.key;

-- name: params_of_runs
-- Those of the given JSON list of runs that may have the param.
SELECT r.id, r.params FROM json_each(:ids) AS wanted CROSS JOIN runs AS r ON r.id = wanted.value
WHERE instr(r.params, :key) > 0;

-- name: add_command
INSERT INTO commands (run_id, kind, asked_by, task, everything, comment, asked_at)
VALUES (:run, :kind, :by, :task, :everything, :comment, :now)
RETURNING id;

-- name: call_for_attention
-- A command makes the run claimable, finished or not; a cancel stands from its first request on.
UPDATE runs SET
    attention = 1,
    changed = :changed,
    cancel_requested_at = iif(:cancels, coalesce(cancel_requested_at, :now), cancel_requested_at)
WHERE id = :run;

-- name: pending_commands
SELECT id, run_id, kind, asked_by, task, everything, comment
FROM commands
WHERE run_id = :run AND done_at IS NULL
ORDER BY id;
