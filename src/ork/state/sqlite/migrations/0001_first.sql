-- The first schema. Times are UTC text of fixed width (they sort as they are); a task without instances has idx -1.

PRAGMA application_id = 1332898609;

-- What belongs to the store itself: the key from which attempts' tokens are derived.
CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Grows with every commit that others may care about; rows remember the value under which they were written.
CREATE TABLE counter (
    id      INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    changed INTEGER NOT NULL
) STRICT;
INSERT INTO counter (id, changed) VALUES (1, 0);

CREATE TABLE versions (
    id       TEXT NOT NULL PRIMARY KEY,
    workflow TEXT NOT NULL,
    root     TEXT NOT NULL,
    source   TEXT,
    document TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE workflows (
    name            TEXT NOT NULL PRIMARY KEY,
    version         TEXT NOT NULL,
    enabled         INTEGER NOT NULL,
    deployed_at     TEXT NOT NULL,
    origin          TEXT,
    schedule        TEXT,
    max_active_runs INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE limits (
    name  TEXT NOT NULL PRIMARY KEY,
    slots INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The lease is here and not on each run: renewing costs one row however many runs are owned.
-- It is in seconds since boot, so no change of the wall clock can end or prolong it; another boot has ended it.
CREATE TABLE schedulers (
    id          TEXT NOT NULL PRIMARY KEY,
    identity    TEXT NOT NULL,
    kind        TEXT NOT NULL,
    started_at  TEXT NOT NULL,
    lease_boot  TEXT NOT NULL,
    lease_until REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- attention: 1 while the run needs an owner. A finished run has 0 and is in none of the small indexes below.
CREATE TABLE runs (
    id                  TEXT NOT NULL PRIMARY KEY,
    workflow            TEXT NOT NULL,
    version             TEXT NOT NULL,
    status              TEXT NOT NULL,
    trigger             TEXT NOT NULL,
    params              TEXT NOT NULL,
    created_at          TEXT NOT NULL,
    scheduled_for       TEXT,
    started_at          TEXT,
    finished_at         TEXT,
    error               TEXT,
    round               INTEGER NOT NULL,
    priority            INTEGER NOT NULL,
    cancel_requested_at TEXT,
    note                TEXT,
    key                 TEXT,
    owner               TEXT,
    epoch               INTEGER NOT NULL,
    attention           INTEGER NOT NULL,
    changed             INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One run per idempotency key, and one per workflow and scheduled time, for ever.
CREATE UNIQUE INDEX runs_key ON runs (workflow, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX runs_slot ON runs (workflow, scheduled_for)
    WHERE scheduled_for IS NOT NULL AND trigger IN ('schedule', 'backfill');

-- What can be claimed, in the order of claiming; it holds all that the claim looks at, its own condition included.
CREATE INDEX runs_waiting ON runs
    (priority DESC, created_at, id, workflow, status, cancel_requested_at, attention, owner)
    WHERE attention = 1 AND owner IS NULL;
CREATE INDEX runs_owned ON runs (owner) WHERE owner IS NOT NULL;

-- What counts against max_active_runs.
CREATE INDEX runs_occupying ON runs (workflow)
    WHERE status IN ('running', 'paused') OR (status = 'pending' AND owner IS NOT NULL);

-- Listings, newest first: one range for each status, merged by the reader.
CREATE INDEX runs_by_status ON runs (status, created_at, id);
CREATE INDEX runs_by_workflow ON runs (workflow, status, created_at, id);

-- ordinal: the task's place in its workflow, so that the primary key is the order people see.
CREATE TABLE tasks (
    run_id           TEXT NOT NULL,
    ordinal          INTEGER NOT NULL,
    idx              INTEGER NOT NULL,
    name             TEXT NOT NULL,
    status           TEXT NOT NULL,
    executor         TEXT NOT NULL,
    attempt          INTEGER NOT NULL,
    earlier_attempts INTEGER NOT NULL,
    reason           TEXT,
    cause_name       TEXT,
    cause_idx        INTEGER,
    failure          TEXT,
    exit_code        INTEGER,
    dispatched_at    TEXT,
    started_at       TEXT,
    finished_at      TEXT,
    retry_at         TEXT,
    output_key       TEXT,
    output_size      INTEGER,
    output           TEXT,
    changed          INTEGER NOT NULL,
    PRIMARY KEY (run_id, ordinal, idx)
) STRICT, WITHOUT ROWID;

CREATE INDEX tasks_changed ON tasks (run_id, changed);

CREATE TABLE attempts (
    run_id        TEXT NOT NULL,
    ordinal       INTEGER NOT NULL,
    idx           INTEGER NOT NULL,
    number        INTEGER NOT NULL,
    name          TEXT NOT NULL,
    status        TEXT NOT NULL,
    executor      TEXT NOT NULL,
    pool          TEXT,
    external_name TEXT NOT NULL,
    token_hash    TEXT NOT NULL,
    dispatched_at TEXT NOT NULL,
    started_at    TEXT,
    finished_at   TEXT,
    exit_code     INTEGER,
    failure       TEXT,
    closing       TEXT,
    closing_since TEXT,
    seq           INTEGER NOT NULL,
    seen_at       TEXT,
    PRIMARY KEY (run_id, ordinal, idx, number)
) STRICT, WITHOUT ROWID;

-- Limits are counted from these rows; counting costs what is active, never what has been.
CREATE INDEX attempts_active ON attempts (run_id, executor, pool) WHERE status IN ('dispatched', 'running');

-- What people asked for. Kept when done, as the record of who did what.
CREATE TABLE commands (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id     TEXT NOT NULL,
    kind       TEXT NOT NULL,
    asked_by   TEXT NOT NULL,
    task       TEXT,
    everything INTEGER NOT NULL,
    asked_at   TEXT NOT NULL,
    done_at    TEXT
) STRICT;

CREATE INDEX commands_waiting ON commands (run_id, id) WHERE done_at IS NULL;

-- What people are to be told, written in the transaction that made it true.
CREATE TABLE alerts (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id     TEXT NOT NULL,
    task       TEXT,
    idx        INTEGER,
    failure    TEXT,
    raised_at  TEXT NOT NULL
) STRICT;

CREATE INDEX alerts_of_run ON alerts (run_id, id);

PRAGMA user_version = 1;
