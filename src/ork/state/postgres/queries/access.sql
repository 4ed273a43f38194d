-- name: add_token
-- A known id or digest makes this write nothing: the row count is the answer.
INSERT INTO ork.tokens (id, name, role, digest, created_at, revoked_at, expires_at, last_used_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT DO NOTHING;

-- name: find_token
SELECT id, name, role, digest, created_at, revoked_at, expires_at, last_used_at FROM ork.tokens WHERE digest = $1;

-- name: list_tokens
SELECT id, name, role, digest, created_at, revoked_at, expires_at, last_used_at FROM ork.tokens ORDER BY created_at, id;

-- name: revoke_token
UPDATE ork.tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL;

-- name: live_tokens
SELECT digest FROM ork.tokens
WHERE digest = ANY ($1::text[]) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2);

-- name: expire_token
-- Never later than it was to expire anyway.
UPDATE ork.tokens SET expires_at = least($2, coalesce(expires_at, $2))
WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3);

-- name: mark_token_used
UPDATE ork.tokens SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2);

-- name: forget_tokens
DELETE FROM ork.tokens WHERE name = $1 AND expires_at < $2;

-- name: delete_used_keys
DELETE FROM ork.used_keys WHERE until <= $1;

-- name: add_used_key
-- A known key makes this write nothing: the row count is the answer.
INSERT INTO ork.used_keys (key, until) VALUES ($1, $2) ON CONFLICT DO NOTHING;

-- name: add_audit
INSERT INTO ork.audit (at, by, action, subject, detail, token, address) VALUES ($1, $2, $3, $4, $5, $6, $7);

-- name: trim_audit
DELETE FROM ork.audit WHERE action = $1
AND id <= (SELECT id FROM ork.audit WHERE action = $1 ORDER BY id DESC LIMIT 1 OFFSET $2);

-- name: list_audit
SELECT at, by, action, subject, detail, id, token, address FROM ork.audit WHERE id < $1 ORDER BY id DESC LIMIT $2;
