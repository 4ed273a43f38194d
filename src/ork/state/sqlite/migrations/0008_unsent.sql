-- What could not be sent is few, and looked for by whoever asks how things are.
CREATE INDEX alerts_unsent ON alerts (id) WHERE error IS NOT NULL;

PRAGMA user_version = 8;
