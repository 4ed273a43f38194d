-- name: list_locations
SELECT name, source, due_at, held_until, digest, seen, looked_at, changed_at, code, error, output
FROM locations ORDER BY name;

-- name: release_workflows
-- Before the location itself goes: afterwards nobody knows whose they were.
UPDATE workflows SET enabled = 0, fires = 0, next_fire = NULL
WHERE substr(origin, 1, length(:name) + 10) = 'location:' || :name || '@';

-- name: forget_location
DELETE FROM locations WHERE name = :name;

-- name: set_location
-- Another source is another location under the same name. A row that is as it was is not written.
INSERT INTO locations (name, source, due_at) VALUES (:name, :source, :now)
ON CONFLICT (name) DO UPDATE SET
    source = excluded.source, due_at = excluded.due_at, held_until = NULL, digest = NULL, seen = NULL,
    looked_at = NULL, changed_at = NULL, code = NULL, error = NULL, output = NULL
WHERE source <> excluded.source;

-- name: ask_refresh
-- Remembered beside the time: whoever looks at this moment will set another time when done.
UPDATE locations SET due_at = min(due_at, :now), is_asked = 1, seen = digest WHERE name = :name;

-- name: due_location
SELECT name, source, due_at, held_until, digest, seen, looked_at, changed_at, code, error, output
FROM locations
WHERE name IN (SELECT value FROM json_each(:names))
  AND due_at <= :now AND (held_until IS NULL OR held_until <= :now)
ORDER BY due_at, name LIMIT 1;

-- name: hold_location
-- Who asks from now on wants another look than the one that begins.
UPDATE locations SET held_until = :until, is_asked = 0 WHERE name = :name;

-- name: keep_location
UPDATE locations SET held_until = :until WHERE name = :name AND source = :source AND held_until = :held_until;

-- name: settle_location
UPDATE locations SET
    held_until = NULL, due_at = iif(is_asked, :now, :due_at), looked_at = :now, seen = :seen,
    changed_at = iif(:digest IS NULL OR digest IS :digest, changed_at, :now),
    digest = coalesce(:digest, digest),
    code = :code, error = :error, output = :output
WHERE name = :name AND source = :source AND held_until = :held_until;

-- name: next_location_at
SELECT min(coalesce(held_until, due_at)) FROM locations WHERE name IN (SELECT value FROM json_each(:names));

-- name: owner_of_workflow
-- A workflow belongs to the location it comes from for as long as that location is known.
SELECT l.name FROM workflows AS w
JOIN locations AS l ON substr(w.origin, 1, length(l.name) + 10) = 'location:' || l.name || '@'
WHERE w.name = :workflow;
