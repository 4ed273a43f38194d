-- Tokens, the audit trail, the history of versions, and changes across runs.

-- Runs in the order of their last change: what a listener has not heard of yet is one range.
CREATE INDEX runs_changed ON runs (changed);

ALTER TABLE versions ADD COLUMN saved_at TEXT;
ALTER TABLE versions ADD COLUMN saved INTEGER NOT NULL DEFAULT 0;
CREATE INDEX versions_of_workflow ON versions (workflow, saved DESC);

-- A token's text is nowhere: its digest is looked up.
CREATE TABLE tokens (
    id         TEXT NOT NULL PRIMARY KEY,
    name       TEXT NOT NULL,
    role       TEXT NOT NULL,
    digest     TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    revoked_at TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      TEXT NOT NULL,
    by      TEXT NOT NULL,
    action  TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail  TEXT
) STRICT;

PRAGMA user_version = 3;
