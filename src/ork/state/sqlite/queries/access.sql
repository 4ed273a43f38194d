-- name: add_token
-- A known id or digest makes this write nothing: the row count is the answer.
INSERT INTO tokens (id, name, role, digest, created_at, revoked_at)
VALUES (:id, :name, :role, :digest, :created_at, :revoked_at)
ON CONFLICT DO NOTHING;

-- name: find_token
SELECT id, name, role, digest, created_at, revoked_at FROM tokens WHERE digest = :digest;

-- name: list_tokens
SELECT id, name, role, digest, created_at, revoked_at FROM tokens ORDER BY created_at, id;

-- name: revoke_token
UPDATE tokens SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL;

-- name: add_audit
INSERT INTO audit (at, by, action, subject, detail) VALUES (:at, :by, :action, :subject, :detail);

-- name: list_audit
SELECT at, by, action, subject, detail, id FROM audit WHERE id < :before ORDER BY id DESC LIMIT :limit;
