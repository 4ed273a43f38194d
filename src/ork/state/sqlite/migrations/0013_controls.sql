-- What people told schedulers to do: pause or drain. target: '*', a scheduler's id, or a host's name.
CREATE TABLE controls (
    target   TEXT PRIMARY KEY,
    mode     TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    asked_at TEXT NOT NULL,
    reason   TEXT
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 13;
