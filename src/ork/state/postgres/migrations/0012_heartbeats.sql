-- The last heartbeat of an attempt that somebody saw, and since when, by the clock of this database: whoever owns the run
-- next knows how long its worker has been silent. Written when silence is noticed, not with every heartbeat.
ALTER TABLE ork.attempts ADD COLUMN heard_seq bigint, ADD COLUMN heard_at timestamptz;
