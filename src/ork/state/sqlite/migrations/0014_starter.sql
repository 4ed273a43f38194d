-- Who asked for the run: a person or a token. None for schedules, and for runs of an older schema.
ALTER TABLE runs ADD COLUMN started_by TEXT;

PRAGMA user_version = 14;
