PRAGMA user_version = 4;
PRAGMA application_id = 1332898609;
BEGIN TRANSACTION;
CREATE TABLE "alerts" (
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
INSERT INTO "alerts" VALUES(1,'run','flow','failed',NULL,NULL,'{"kind":"exit","message":"exit 3","detail":{"tail":["no"]}}',NULL,'2026-03-01T12:00:00.250000Z','2026-03-01T12:00:00.250000Z',0,'[]',NULL);
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
    seen_at       TEXT, waits_for TEXT, is_waiting INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id, ordinal, idx, number)
) STRICT, WITHOUT ROWID;
INSERT INTO "attempts" VALUES('busy',0,-1,1,'extract','dispatched','process','api','name of busy/extract/0/1','hash','2026-03-01T12:00:00.250000Z',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,0);
INSERT INTO "attempts" VALUES('done',0,-1,1,'extract','success','process',NULL,'name of done/extract/0/1','hash','2026-03-01T12:00:00.250000Z',NULL,NULL,0,NULL,NULL,NULL,0,NULL,NULL,0);
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      TEXT NOT NULL,
    by      TEXT NOT NULL,
    action  TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail  TEXT
) STRICT;
CREATE TABLE buckets (
    name   TEXT NOT NULL PRIMARY KEY,
    tokens REAL NOT NULL,
    boot   TEXT NOT NULL,
    at     REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE commands (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id     TEXT NOT NULL,
    kind       TEXT NOT NULL,
    asked_by   TEXT NOT NULL,
    task       TEXT,
    everything INTEGER NOT NULL,
    asked_at   TEXT NOT NULL,
    done_at    TEXT
, comment TEXT) STRICT;
INSERT INTO "commands" VALUES(1,'busy','pause','eve',NULL,0,'2026-03-01T12:00:00.250000Z',NULL,NULL);
CREATE TABLE counter (
    id      INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    changed INTEGER NOT NULL
) STRICT;
INSERT INTO "counter" VALUES(1,6);
CREATE TABLE limits (
    name  TEXT NOT NULL PRIMARY KEY,
    slots INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "limits" VALUES('*',8);
INSERT INTO "limits" VALUES('pool:api',2);
CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "meta" VALUES('signing_key',X'6F67333B8CCAFBE09256B60E680C7DC165F3DE86D679FDDFA549C8F01EAA5B6E');
CREATE TABLE rates (
    name    TEXT NOT NULL PRIMARY KEY,
    count   INTEGER NOT NULL,
    seconds REAL NOT NULL
) STRICT, WITHOUT ROWID;
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
, fresh INTEGER NOT NULL DEFAULT 0, parent TEXT) STRICT, WITHOUT ROWID;
INSERT INTO "runs" VALUES('busy','flow','version-of-flow','running','manual','{"day":1}','2026-03-01T12:00:00.250000Z',NULL,'2026-03-01T12:00:00.250000Z',NULL,NULL,1,0,NULL,NULL,NULL,'ann',1,1,5,0,NULL);
INSERT INTO "runs" VALUES('done','flow','version-of-flow','success','manual','{"day":1}','2026-03-01T12:00:00.250000Z',NULL,'2026-03-01T12:00:00.250000Z','2026-03-01T12:00:02.250000Z',NULL,1,0,NULL,NULL,NULL,NULL,1,0,4,0,NULL);
INSERT INTO "runs" VALUES('failed','flow','version-of-flow','failed','manual','{"day":1}','2026-03-01T12:00:00.250000Z',NULL,'2026-03-01T12:00:00.250000Z','2026-03-01T12:00:02.250000Z',NULL,1,0,NULL,NULL,NULL,NULL,1,0,4,0,NULL);
INSERT INTO "runs" VALUES('pending','flow','version-of-flow','pending','manual','{}','2026-03-01T12:00:05.250000Z',NULL,NULL,NULL,NULL,1,0,NULL,NULL,'k',NULL,0,1,6,0,NULL);
CREATE TABLE schedulers (
    id          TEXT NOT NULL PRIMARY KEY,
    identity    TEXT NOT NULL,
    kind        TEXT NOT NULL,
    started_at  TEXT NOT NULL,
    lease_boot  TEXT NOT NULL,
    lease_until REAL NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "schedulers" VALUES('ann','identity of ann','scheduler','2026-03-01T12:00:00.250000Z','b3bf14be-48e7-4d65-a62e-aff2305c9f02',7700.161029065);
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
    changed          INTEGER NOT NULL, instances INTEGER, item TEXT, cache_key TEXT,
    PRIMARY KEY (run_id, ordinal, idx)
) STRICT, WITHOUT ROWID;
INSERT INTO "tasks" VALUES('busy',0,-1,'extract','dispatched','process',1,0,NULL,NULL,NULL,NULL,NULL,'2026-03-01T12:00:00.250000Z',NULL,NULL,NULL,NULL,NULL,NULL,4,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('busy',1,-1,'load','pending','process',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,4,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('done',0,-1,'extract','success','process',1,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"rows":12}',4,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('failed',0,-1,'extract','failed','process',0,0,NULL,NULL,NULL,'{"kind":"exit","message":"exit 3","detail":{"tail":["no"]}}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,4,NULL,NULL,NULL);
CREATE TABLE tokens (
    id         TEXT NOT NULL PRIMARY KEY,
    name       TEXT NOT NULL,
    role       TEXT NOT NULL,
    digest     TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    revoked_at TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE versions (
    id       TEXT NOT NULL PRIMARY KEY,
    workflow TEXT NOT NULL,
    root     TEXT NOT NULL,
    source   TEXT,
    document TEXT NOT NULL
, saved_at TEXT, saved INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
INSERT INTO "versions" VALUES('version-of-flow','flow','/project','flow.yaml','{"name":"flow","schedule":{"cron":"0 2 * * *","timezone":"Europe/Prague"},"tasks":[{"name":"extract","executor":"process","action":{"command":[{"const":"true"}]}},{"name":"load","executor":"process","action":{"command":[{"const":"true"}]}}]}','2026-03-01T12:00:00.250000Z',1);
CREATE TABLE workflows (
    name            TEXT NOT NULL PRIMARY KEY,
    version         TEXT NOT NULL,
    enabled         INTEGER NOT NULL,
    deployed_at     TEXT NOT NULL,
    origin          TEXT,
    schedule        TEXT,
    max_active_runs INTEGER
, fires INTEGER NOT NULL DEFAULT 0, next_fire TEXT) STRICT, WITHOUT ROWID;
INSERT INTO "workflows" VALUES('flow','version-of-flow',1,'2026-03-01T12:00:00.250000Z','golden','["0 2 * * *","Europe/Prague","none",true]',NULL,1,'2026-03-01T13:00:00.250000Z');
CREATE UNIQUE INDEX runs_key ON runs (workflow, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX runs_slot ON runs (workflow, scheduled_for)
    WHERE scheduled_for IS NOT NULL AND trigger IN ('schedule', 'backfill');
CREATE INDEX runs_waiting ON runs
    (priority DESC, created_at, id, workflow, status, cancel_requested_at, attention, owner)
    WHERE attention = 1 AND owner IS NULL;
CREATE INDEX runs_owned ON runs (owner) WHERE owner IS NOT NULL;
CREATE INDEX runs_occupying ON runs (workflow)
    WHERE status IN ('running', 'paused') OR (status = 'pending' AND owner IS NOT NULL);
CREATE INDEX runs_by_status ON runs (status, created_at, id);
CREATE INDEX runs_by_workflow ON runs (workflow, status, created_at, id);
CREATE INDEX tasks_changed ON tasks (run_id, changed);
CREATE INDEX commands_waiting ON commands (run_id, id) WHERE done_at IS NULL;
CREATE INDEX tasks_cached ON tasks (cache_key, finished_at) WHERE cache_key IS NOT NULL AND status = 'success';
CREATE INDEX attempts_active ON attempts (run_id, executor, pool, is_waiting) WHERE status IN ('dispatched', 'running');
CREATE INDEX runs_changed ON runs (changed);
CREATE INDEX versions_of_workflow ON versions (workflow, saved DESC);
CREATE INDEX workflows_due ON workflows (next_fire) WHERE fires = 1;
CREATE INDEX alerts_of_run ON alerts (run_id, id) WHERE run_id IS NOT NULL;
CREATE INDEX alerts_due ON alerts (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX commands_done ON commands (run_id) WHERE done_at IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('alerts',1);
INSERT INTO "sqlite_sequence" VALUES('commands',1);
COMMIT;
