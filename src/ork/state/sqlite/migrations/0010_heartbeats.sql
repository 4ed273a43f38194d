-- The last heartbeat of an attempt that somebody saw, and since when (by the clock that leases go by): whoever owns the
-- run next knows how long its worker has been silent. Written when silence is noticed, not with every heartbeat.
ALTER TABLE attempts ADD COLUMN heard_seq INTEGER;
ALTER TABLE attempts ADD COLUMN heard_boot TEXT;
ALTER TABLE attempts ADD COLUMN heard_at REAL;

PRAGMA user_version = 10;
