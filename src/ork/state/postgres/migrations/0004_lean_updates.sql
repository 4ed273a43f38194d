-- Tasks and attempts change several times and are then left alone. What changes on the way to their end is in no index, and
-- half of each page is left free for it: so a change is one new version on the same page, and no index is written.

-- Which tasks of a run a commit wrote, by their keys: a look at a large run costs what is new.
CREATE TABLE ork.task_changes (
    run_id   text COLLATE "C" NOT NULL,
    changed  bigint NOT NULL,
    ordinals integer[] NOT NULL,
    idxs     integer[] NOT NULL,
    PRIMARY KEY (run_id, changed)
);
INSERT INTO ork.task_changes (run_id, changed, ordinals, idxs)
SELECT run_id, changed, array_agg(ordinal), array_agg(idx) FROM ork.tasks GROUP BY run_id, changed;

-- cached_at: of a result that others may take, when it was there. Most tasks have none, ever.
ALTER TABLE ork.tasks
    DROP COLUMN changed,
    ADD COLUMN cached_at timestamptz
        GENERATED ALWAYS AS (CASE WHEN cache_key IS NOT NULL AND status = 'success' THEN finished_at END) STORED;
ALTER TABLE ork.tasks SET (fillfactor = 50);
DROP INDEX ork.tasks_cached;
CREATE INDEX tasks_cached ON ork.tasks (cache_key, cached_at) WHERE cached_at IS NOT NULL;

-- active: the same while an attempt is dispatched and then running, unlike its status.
ALTER TABLE ork.attempts
    ADD COLUMN active boolean NOT NULL GENERATED ALWAYS AS (status IN ('dispatched', 'running')) STORED;
ALTER TABLE ork.attempts SET (fillfactor = 50);
DROP INDEX ork.attempts_active;
CREATE INDEX attempts_active ON ork.attempts (run_id, executor, pool, is_waiting) WHERE active;
