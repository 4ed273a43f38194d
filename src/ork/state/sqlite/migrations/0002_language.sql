-- Fan-out, caching, waiting without a slot, rate limits, approvals, reruns.

ALTER TABLE runs ADD COLUMN fresh INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN parent TEXT;

-- instances: of a task that has fanned out, how many; item: of an instance, what it is for.
ALTER TABLE tasks ADD COLUMN instances INTEGER;
ALTER TABLE tasks ADD COLUMN item TEXT;
ALTER TABLE tasks ADD COLUMN cache_key TEXT;

-- An equal result is found by its key, newest first; tasks without caching are not in it.
CREATE INDEX tasks_cached ON tasks (cache_key, finished_at) WHERE cache_key IS NOT NULL AND status = 'success';

-- What an attempt that handed over to external jobs waits for; it takes no slot meanwhile.
ALTER TABLE attempts ADD COLUMN waits_for TEXT;
ALTER TABLE attempts ADD COLUMN is_waiting INTEGER NOT NULL DEFAULT 0;
DROP INDEX attempts_active;
CREATE INDEX attempts_active ON attempts (run_id, executor, pool, is_waiting) WHERE status IN ('dispatched', 'running');

ALTER TABLE commands ADD COLUMN comment TEXT;

-- Of pools that have a rate: so many starts in so many seconds.
CREATE TABLE rates (
    name    TEXT NOT NULL PRIMARY KEY,
    count   INTEGER NOT NULL,
    seconds REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- A token bucket for each pool or task with a rate, as it was when last used, by the store's clock.
CREATE TABLE buckets (
    name   TEXT NOT NULL PRIMARY KEY,
    tokens REAL NOT NULL,
    boot   TEXT NOT NULL,
    at     REAL NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 2;
