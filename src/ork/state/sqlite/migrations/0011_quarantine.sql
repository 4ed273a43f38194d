-- Items that cannot be decoded or worked with, and why. A run in here is not claimed until a person asks something of it.
CREATE TABLE quarantine (
    kind   TEXT NOT NULL,
    id     TEXT NOT NULL,
    reason TEXT NOT NULL,
    since  TEXT NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 11;
