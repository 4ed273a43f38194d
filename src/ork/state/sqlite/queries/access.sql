-- name: add_token
-- A known id or digest makes this write nothing: the row count is the answer.
INSERT INTO tokens (id, name, role, digest, created_at, revoked_at, expires_at, last_used_at)
VALUES (:id, :name, :role, :digest, :created_at, :revoked_at, :expires_at, :last_used_at)
ON CONFLICT DO NOTHING;

-- name: find_token
SELECT id, name, role, digest, created_at, revoked_at, expires_at, last_used_at FROM tokens WHERE digest = :digest;

-- name: list_tokens
SELECT id, name, role, digest, created_at, revoked_at, expires_at, last_used_at FROM tokens ORDER BY created_at, id;

-- name: revoke_token
UPDATE tokens SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL;

-- name: live_tokens
SELECT digest FROM tokens
WHERE digest IN (SELECT value FROM json_each(:digests)) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now);

-- name: expire_token
-- Never later than it was to expire anyway.
UPDATE tokens SET expires_at = min(:until, coalesce(expires_at, :until))
WHERE id = :id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now);

-- name: mark_token_used
UPDATE tokens SET last_used_at = :now WHERE id = :id AND (last_used_at IS NULL OR last_used_at < :now);

-- name: forget_tokens
DELETE FROM tokens WHERE name = :name AND expires_at < :before;

-- name: delete_used_keys
DELETE FROM used_keys WHERE until <= :now;

-- name: add_used_key
-- A known key makes this write nothing: the row count is the answer.
INSERT INTO used_keys (key, until) VALUES (:key, :until) ON CONFLICT DO NOTHING;

-- name: add_audit
INSERT INTO audit (at, by, action, subject, detail, token, address)
VALUES (:at, :by, :action, :subject, :detail, :token, :address);

-- name: trim_audit
DELETE FROM audit WHERE action = :action
AND id <= (SELECT id FROM audit WHERE action = :action ORDER BY id DESC LIMIT 1 OFFSET :keep);

-- name: list_audit
SELECT at, by, action, subject, detail, id, token, address FROM audit WHERE id < :before ORDER BY id DESC LIMIT :limit;
