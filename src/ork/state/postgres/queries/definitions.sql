-- name: add_version
-- A version is immutable: a second save of the same id leaves the first row as it is, and gives no row.
INSERT INTO ork.versions (id, workflow, root, source, document, code, saved_at, saved)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (id) DO NOTHING;

-- name: repair_version
UPDATE ork.versions SET root = $2, source = $3, document = $4, code = $5 WHERE id = $1;

-- name: set_current_version
-- Saving what is current already only enables the workflow: its date and origin stay those of the first time, unless
-- it goes from hand to hand between a location and somebody else, or from digest to digest. A schedule that is as it was
-- and was on keeps its time.
INSERT INTO ork.workflows AS w (name, version, enabled, deployed_at, origin, schedule, max_active_runs, fires, next_fire)
VALUES ($1, $2, true, $3, $4, $5, $6, $7, $8)
ON CONFLICT (name) DO UPDATE SET
    version = excluded.version,
    enabled = true,
    deployed_at = CASE WHEN w.version = excluded.version THEN w.deployed_at ELSE excluded.deployed_at END,
    origin = CASE
        WHEN w.version = excluded.version AND coalesce(w.origin, '') NOT LIKE 'location:%'
            AND coalesce(excluded.origin, '') NOT LIKE 'location:%' THEN w.origin
        ELSE excluded.origin END,
    schedule = excluded.schedule,
    max_active_runs = excluded.max_active_runs,
    fires = excluded.fires,
    next_fire = CASE
        WHEN NOT excluded.fires THEN NULL
        WHEN w.fires AND w.schedule = excluded.schedule THEN w.next_fire
        ELSE excluded.next_fire END;

-- name: lock_workflow
SELECT schedule FROM ork.workflows WHERE name = $1 FOR UPDATE;

-- name: set_enabled
UPDATE ork.workflows SET
    enabled = $2, fires = $3,
    next_fire = CASE WHEN NOT $3 THEN NULL WHEN fires THEN next_fire ELSE $4 END
WHERE name = $1;

-- name: has_unfinished_runs
SELECT EXISTS (SELECT 1 FROM ork.runs WHERE workflow = $1 AND status IN ('pending', 'running', 'paused'));

-- name: delete_workflow
DELETE FROM ork.workflows WHERE name = $1;

-- name: limits_and_rates
SELECT name, slots, NULL::float8 FROM ork.limits UNION ALL SELECT 'rate of ' || name, count, seconds FROM ork.rates;

-- name: lock_all_limits
SELECT name FROM ork.limits ORDER BY name FOR UPDATE;

-- name: forget_limits
DELETE FROM ork.limits WHERE NOT name = ANY ($1::text[]);

-- name: set_limits
-- A row that stays is changed, never replaced: somebody may be waiting for its lock, and would find it gone.
INSERT INTO ork.limits (name, slots)
SELECT name, slots FROM unnest($1::text[], $2::integer[]) AS n (name, slots) ORDER BY name
ON CONFLICT (name) DO UPDATE SET slots = excluded.slots;

-- name: forget_rates
DELETE FROM ork.rates WHERE NOT name = ANY ($1::text[]);

-- name: set_rates
INSERT INTO ork.rates (name, count, seconds)
SELECT name, count, seconds FROM unnest($1::text[], $2::integer[], $3::float8[]) AS n (name, count, seconds) ORDER BY name
ON CONFLICT (name) DO UPDATE SET count = excluded.count, seconds = excluded.seconds;

-- name: get_version
SELECT root, source, document, code FROM ork.versions WHERE id = $1;

-- name: list_versions
SELECT id, saved_at, source FROM ork.versions WHERE workflow = $1 ORDER BY saved DESC, id LIMIT $2;

-- name: get_workflow
SELECT name, version, enabled, deployed_at, origin, schedule FROM ork.workflows WHERE name = $1;

-- name: list_workflows
SELECT name, version, enabled, deployed_at, origin, schedule FROM ork.workflows ORDER BY name;

-- name: signing_key
SELECT value FROM ork.meta WHERE name = 'signing_key';

-- name: read_shared_settings
SELECT value FROM ork.meta WHERE name = 'shared_settings';

-- name: record_shared_settings
INSERT INTO ork.meta (name, value) VALUES ('shared_settings', convert_to($1, 'UTF8')) ON CONFLICT (name) DO NOTHING;

-- name: replace_shared_settings
-- Waits for those that register right now: they hold this row until they are done.
INSERT INTO ork.meta (name, value) VALUES ('shared_settings', convert_to($1, 'UTF8'))
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: count_active_attempts
SELECT count(*) FROM ork.attempts WHERE status IN ('dispatched', 'running');

-- name: read_note
SELECT value FROM ork.meta WHERE name = $1;

-- name: add_note
INSERT INTO ork.meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING;

-- name: replace_note
UPDATE ork.meta SET value = $3 WHERE name = $1 AND value = $2;
