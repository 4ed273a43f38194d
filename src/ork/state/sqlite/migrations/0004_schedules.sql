-- When schedules fire next, and an outbox for what people are to be told.

-- fires: the workflow and its schedule are both on. next_fire: NULL while nobody has planned it.
ALTER TABLE workflows ADD COLUMN fires INTEGER NOT NULL DEFAULT 0;
ALTER TABLE workflows ADD COLUMN next_fire TEXT;
UPDATE workflows SET fires = 1
WHERE enabled = 1 AND schedule IS NOT NULL AND json_extract(schedule, '$[3]') = 1;
CREATE INDEX workflows_due ON workflows (next_fire) WHERE fires = 1;

-- due_at: NULL once everybody has been told. sent: a JSON list of those who have been.
CREATE TABLE outbox (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    kind      TEXT NOT NULL,
    workflow  TEXT NOT NULL,
    run_id    TEXT,
    task      TEXT,
    idx       INTEGER,
    failure   TEXT,
    detail    TEXT,
    raised_at TEXT NOT NULL,
    due_at    TEXT,
    tries     INTEGER NOT NULL,
    sent      TEXT NOT NULL,
    error     TEXT
) STRICT;

-- What was raised before there was an outbox is history: nobody is told of it now.
INSERT INTO outbox (id, kind, workflow, run_id, task, idx, failure, raised_at, tries, sent)
SELECT a.id, iif(a.task IS NULL, 'run', 'task'), r.workflow, a.run_id, a.task, a.idx, a.failure, a.raised_at, 0, '[]'
FROM alerts AS a JOIN runs AS r ON r.id = a.run_id;

DROP TABLE alerts;
ALTER TABLE outbox RENAME TO alerts;
CREATE INDEX alerts_of_run ON alerts (run_id, id) WHERE run_id IS NOT NULL;
CREATE INDEX alerts_due ON alerts (due_at, id) WHERE due_at IS NOT NULL;

-- Forgetting a run must not walk over all commands there ever were.
CREATE INDEX commands_done ON commands (run_id) WHERE done_at IS NOT NULL;

PRAGMA user_version = 4;
