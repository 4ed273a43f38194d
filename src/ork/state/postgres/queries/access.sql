-- name: add_token
-- A known id or digest makes this write nothing: the row count is the answer.
INSERT INTO ork.tokens (id, name, role, digest, created_at, revoked_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT DO NOTHING;

-- name: find_token
SELECT id, name, role, digest, created_at, revoked_at FROM ork.tokens WHERE digest = $1;

-- name: list_tokens
SELECT id, name, role, digest, created_at, revoked_at FROM ork.tokens ORDER BY created_at, id;

-- name: revoke_token
UPDATE ork.tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL;

-- name: add_audit
INSERT INTO ork.audit (at, by, action, subject, detail) VALUES ($1, $2, $3, $4, $5);

-- name: list_audit
SELECT at, by, action, subject, detail, id FROM ork.audit WHERE id < $1 ORDER BY id DESC LIMIT $2;
