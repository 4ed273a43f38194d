-- What is active is counted in every commit below a limit: with the status in it, this index is all that is read for that.
DROP INDEX attempts_active;
CREATE INDEX attempts_active ON attempts (run_id, executor, pool, is_waiting, status)
    WHERE status IN ('dispatched', 'running');

PRAGMA user_version = 7;
