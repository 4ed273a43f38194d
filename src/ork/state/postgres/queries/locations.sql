-- name: list_locations
SELECT name, source, due_at, held_until, digest, seen, looked_at, changed_at, code, error, output
FROM ork.locations ORDER BY name;

-- name: lock_locations
-- Whoever says which locations there are says it alone.
LOCK TABLE ork.locations IN SHARE ROW EXCLUSIVE MODE;

-- name: release_workflows
-- Before the locations themselves go: afterwards nobody knows whose they were.
UPDATE ork.workflows AS w SET enabled = false, fires = false, next_fire = NULL
FROM ork.locations AS l
WHERE NOT l.name = ANY ($1::text[]) AND starts_with(w.origin, 'location:' || l.name || '@');

-- name: forget_locations
DELETE FROM ork.locations WHERE NOT name = ANY ($1::text[]);

-- name: set_location
-- Another source is another location under the same name. A row that is as it was is not written.
INSERT INTO ork.locations AS l (name, source, due_at) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET
    source = excluded.source, due_at = excluded.due_at, held_until = NULL, digest = NULL, seen = NULL,
    looked_at = NULL, changed_at = NULL, code = NULL, error = NULL, output = NULL
WHERE l.source <> excluded.source;

-- name: ask_refresh
-- Remembered beside the time: whoever looks at this moment will set another time when done.
UPDATE ork.locations SET due_at = least(due_at, $2), is_asked = true, seen = digest WHERE name = $1;

-- name: take_location
-- Who asks from now on wants another look than the one that begins. Two callers at once get two locations, or one none.
UPDATE ork.locations SET held_until = $1 + make_interval(secs => $2), is_asked = false
WHERE name = (
    SELECT name FROM ork.locations
    WHERE name = ANY ($3::text[]) AND due_at <= $1 AND (held_until IS NULL OR held_until <= $1)
    ORDER BY due_at, name LIMIT 1
    FOR UPDATE SKIP LOCKED)
RETURNING name, source, ork.readable(due_at), held_until, digest, seen, ork.readable(looked_at), ork.readable(changed_at),
          code, error, output;

-- name: keep_location
UPDATE ork.locations SET held_until = $4 WHERE name = $1 AND source = $2 AND held_until = $3;

-- name: settle_location
UPDATE ork.locations SET
    held_until = NULL, due_at = CASE WHEN is_asked THEN $5::timestamptz ELSE $4::timestamptz END, looked_at = $5, seen = $6,
    changed_at = CASE WHEN $7::text IS NULL OR digest IS NOT DISTINCT FROM $7 THEN changed_at ELSE $5 END,
    digest = coalesce($7, digest),
    code = $8, error = $9, output = $10
WHERE name = $1 AND source = $2 AND held_until = $3;

-- name: next_location_at
SELECT min(coalesce(held_until, due_at)) FROM ork.locations WHERE name = ANY ($1::text[]);

-- name: owner_of_workflow
-- A workflow belongs to the location it comes from for as long as that location is known.
SELECT l.name FROM ork.workflows AS w
JOIN ork.locations AS l ON starts_with(w.origin, 'location:' || l.name || '@')
WHERE w.name = $1
FOR UPDATE OF w;
