-- name: known_version
SELECT 1 FROM versions WHERE id = :id;

-- name: add_version
-- A version is immutable: it is written once, and again only where its document has been damaged.
INSERT INTO versions (id, workflow, root, source, document, code, saved_at, saved)
VALUES (:id, :workflow, :root, :source, :document, :code, :now, :changed)
ON CONFLICT (id) DO UPDATE SET
    document = excluded.document, root = excluded.root, source = excluded.source, code = excluded.code;

-- name: set_current_version
-- Saving what is current already only enables the workflow: its date and origin stay those of the first time, unless
-- it goes from hand to hand between a location and somebody else, or from digest to digest.
-- A schedule that is as it was, and was on, keeps its time.
INSERT INTO workflows (name, version, enabled, deployed_at, origin, schedule, max_active_runs, fires, next_fire)
VALUES (:name, :version, 1, :now, :origin, :schedule, :max_active_runs, :fires, iif(:fires, :next_fire, NULL))
ON CONFLICT (name) DO UPDATE SET
    next_fire = iif(fires AND schedule IS excluded.schedule, next_fire, excluded.next_fire),
    fires = excluded.fires,
    version = excluded.version,
    enabled = 1,
    deployed_at = iif(version = excluded.version, deployed_at, excluded.deployed_at),
    origin = iif(version = excluded.version AND coalesce(origin, '') NOT LIKE 'location:%'
                 AND coalesce(excluded.origin, '') NOT LIKE 'location:%', origin, excluded.origin),
    schedule = excluded.schedule,
    max_active_runs = excluded.max_active_runs;

-- name: set_enabled
UPDATE workflows SET
    next_fire = CASE WHEN NOT (:enabled AND iif(json_valid(schedule), coalesce(schedule ->> '$[3]', 0), 0)) THEN NULL
                     WHEN fires THEN next_fire ELSE :next_fire END,
    fires = :enabled AND iif(json_valid(schedule), coalesce(schedule ->> '$[3]', 0), 0),
    enabled = :enabled
WHERE name = :name;

-- name: limits_and_rates
SELECT name, slots, NULL FROM limits UNION ALL SELECT 'rate of ' || name, count, seconds FROM rates;

-- name: forget_limits
DELETE FROM limits;

-- name: add_limit
INSERT INTO limits (name, slots) VALUES (?, ?);

-- name: forget_rates
DELETE FROM rates;

-- name: add_rate
INSERT INTO rates (name, count, seconds) VALUES (?, ?, ?);

-- name: get_version
SELECT root, source, document, code FROM versions WHERE id = :id;

-- name: list_workflows
-- A range of names: one of them, or all.
SELECT name, version, enabled, deployed_at, origin, schedule
FROM workflows
WHERE name BETWEEN :first AND :last
ORDER BY name;

-- name: signing_key
SELECT value FROM meta WHERE name = 'signing_key';

-- name: read_shared_settings
SELECT value FROM meta WHERE name = 'shared_settings';

-- name: record_shared_settings
INSERT INTO meta (name, value) VALUES ('shared_settings', CAST(:text AS BLOB)) ON CONFLICT (name) DO NOTHING;

-- name: replace_shared_settings
INSERT INTO meta (name, value) VALUES ('shared_settings', CAST(:text AS BLOB))
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: count_active_attempts
SELECT count(*) FROM attempts WHERE status IN ('dispatched', 'running');

-- name: read_counter
SELECT changed FROM counter WHERE id = 1;

-- name: raise_counter
-- Here and at the fence without RETURNING: for that, SQLite makes a table each time, which takes longer than the rest.
UPDATE counter SET changed = :changed WHERE id = 1 AND changed = :changed - 1;

-- name: list_versions
SELECT id, saved_at, source FROM versions WHERE workflow = :workflow ORDER BY saved DESC, id LIMIT :limit;

-- name: has_unfinished_runs
SELECT EXISTS (
    SELECT 1 FROM runs WHERE workflow = :workflow AND status IN ('pending', 'running', 'paused'));

-- name: delete_workflow
DELETE FROM workflows WHERE name = :workflow;

-- name: read_note
SELECT value FROM meta WHERE name = :name;

-- name: add_note
INSERT INTO meta (name, value) VALUES (:name, :after) ON CONFLICT (name) DO NOTHING;

-- name: replace_note
UPDATE meta SET value = :after WHERE name = :name AND value = :before;
