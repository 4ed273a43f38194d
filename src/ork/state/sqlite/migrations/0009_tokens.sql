-- Tokens that expire, and when they were last used; audit entries with the token and the address they came from.
ALTER TABLE tokens ADD COLUMN expires_at TEXT;
ALTER TABLE tokens ADD COLUMN last_used_at TEXT;
ALTER TABLE audit ADD COLUMN token TEXT;
ALTER TABLE audit ADD COLUMN address TEXT;
-- Of some actions only the newest entries are kept.
CREATE INDEX audit_of_action ON audit (action, id);

PRAGMA user_version = 9;
