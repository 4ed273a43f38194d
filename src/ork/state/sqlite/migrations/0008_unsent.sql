-- What could not be sent is few, and looked for by whoever asks how things are.
CREATE INDEX alerts_unsent ON alerts (id) WHERE error IS NOT NULL;
-- Notices that belong to no run (of times that were missed) are forgotten by their own age.
CREATE INDEX alerts_told ON alerts (raised_at) WHERE run_id IS NULL AND due_at IS NULL;

PRAGMA user_version = 8;
