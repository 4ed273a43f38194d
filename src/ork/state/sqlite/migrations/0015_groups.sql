-- Attempts that a platform starts as one unit: which unit, the attempt's place in it, and how many of the unit's attempts run
-- at the same time. All three are NULL for an attempt that is started alone.
ALTER TABLE attempts ADD COLUMN group_id TEXT;
ALTER TABLE attempts ADD COLUMN group_index INTEGER;
ALTER TABLE attempts ADD COLUMN parallelism INTEGER;

-- Slots are counted from this index alone. A group and its parallelism do not change while an attempt is active.
DROP INDEX attempts_active;
CREATE INDEX attempts_active ON attempts (run_id, executor, pool, is_waiting, group_id, parallelism, status)
    WHERE status IN ('dispatched', 'running');

PRAGMA user_version = 15;
