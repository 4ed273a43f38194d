-- Tokens that expire, and when they were last used; audit entries with the token and the address they came from.
ALTER TABLE ork.tokens ADD COLUMN expires_at timestamptz;
ALTER TABLE ork.tokens ADD COLUMN last_used_at timestamptz;
ALTER TABLE ork.audit ADD COLUMN token text COLLATE "C";
ALTER TABLE ork.audit ADD COLUMN address text;
-- Of some actions only the newest entries are kept.
CREATE INDEX audit_of_action ON ork.audit (action, id);
