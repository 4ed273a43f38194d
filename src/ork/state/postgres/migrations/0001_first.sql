-- The first schema. All of it is in a schema of its own, so that Ork may share a database with others.
-- Text sorts by code point ("C"), whatever the database's language. A task without instances has idx -1.

CREATE SCHEMA ork;

CREATE TABLE ork.schema (
    number integer NOT NULL
);
INSERT INTO ork.schema (number) VALUES (0);

-- What belongs to the store itself: the key from which attempts' tokens are derived.
CREATE TABLE ork.meta (
    name  text COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL
);

-- The number of a change. Rows remember the number under which they were written. It begins at 2, because a sequence
-- that was never used shows 1 as its last value.
CREATE SEQUENCE ork.changes MINVALUE 1;
SELECT setval('ork.changes', 1);

-- Counts commits that others may care about, spread over a few rows so that writers do not queue up; the sum counts.
CREATE TABLE ork.pulse (
    slot   smallint PRIMARY KEY,
    number bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO ork.pulse (slot, number) SELECT slot, 0 FROM generate_series(0, 15) AS slot;

CREATE TABLE ork.versions (
    id       text COLLATE "C" PRIMARY KEY,
    workflow text COLLATE "C" NOT NULL,
    root     text NOT NULL,
    source   text,
    document text NOT NULL,
    saved_at timestamptz NOT NULL,
    saved    bigint NOT NULL
);
CREATE INDEX versions_of_workflow ON ork.versions (workflow, saved DESC);

-- fires: the workflow and its schedule are both on. next_fire: NULL while nobody has planned it.
CREATE TABLE ork.workflows (
    name            text COLLATE "C" PRIMARY KEY,
    version         text COLLATE "C" NOT NULL,
    enabled         boolean NOT NULL,
    deployed_at     timestamptz NOT NULL,
    origin          text,
    schedule        text,
    max_active_runs integer,
    fires           boolean NOT NULL,
    next_fire       timestamptz
);
CREATE INDEX workflows_due ON ork.workflows (next_fire) WHERE fires;

CREATE TABLE ork.limits (
    name  text COLLATE "C" PRIMARY KEY,
    slots integer NOT NULL
);

-- Of pools that have a rate: so many starts in so many seconds.
CREATE TABLE ork.rates (
    name    text COLLATE "C" PRIMARY KEY,
    count   integer NOT NULL,
    seconds double precision NOT NULL
);

-- A token bucket for each pool or task with a rate, as it was when last used, by the database's clock.
CREATE TABLE ork.buckets (
    name   text COLLATE "C" PRIMARY KEY,
    tokens double precision NOT NULL,
    at     timestamptz NOT NULL
);

-- The lease is here and not on each run: renewing costs one row however many runs are owned.
CREATE TABLE ork.schedulers (
    id          text COLLATE "C" PRIMARY KEY,
    identity    text NOT NULL,
    kind        text NOT NULL,
    started_at  timestamptz NOT NULL,
    lease_until timestamptz NOT NULL
) WITH (fillfactor = 50);

-- attention: true while the run needs an owner. A finished run has none of it and is in none of the small indexes below.
CREATE TABLE ork.runs (
    id                  text COLLATE "C" PRIMARY KEY,
    workflow            text COLLATE "C" NOT NULL,
    version             text COLLATE "C" NOT NULL,
    status              text COLLATE "C" NOT NULL,
    trigger             text COLLATE "C" NOT NULL,
    params              text NOT NULL,
    created_at          timestamptz NOT NULL,
    scheduled_for       timestamptz,
    started_at          timestamptz,
    finished_at         timestamptz,
    error               text,
    round               integer NOT NULL,
    priority            integer NOT NULL,
    cancel_requested_at timestamptz,
    note                text,
    fresh               boolean NOT NULL,
    parent              text COLLATE "C",
    key                 text COLLATE "C",
    owner               text COLLATE "C",
    epoch               bigint NOT NULL,
    attention           boolean NOT NULL,
    changed             bigint NOT NULL
);

-- One run per idempotency key, and one per workflow and scheduled time, for ever.
CREATE UNIQUE INDEX runs_key ON ork.runs (workflow, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX runs_slot ON ork.runs (workflow, scheduled_for)
    WHERE scheduled_for IS NOT NULL AND trigger IN ('schedule', 'backfill');

-- What can be claimed, in the order of claiming; what waits by workflow; and whose a run is.
CREATE INDEX runs_waiting ON ork.runs (priority DESC, created_at, id) WHERE attention AND owner IS NULL;
CREATE INDEX runs_queued ON ork.runs (workflow) WHERE attention AND owner IS NULL AND status = 'pending';
CREATE INDEX runs_owned ON ork.runs (owner) WHERE owner IS NOT NULL;

-- What counts against max_active_runs.
CREATE INDEX runs_occupying ON ork.runs (workflow)
    WHERE status IN ('running', 'paused') OR (status = 'pending' AND owner IS NOT NULL);

-- Listings, newest first: one range for each status, merged. Changes across runs, in the order of their numbers.
CREATE INDEX runs_by_status ON ork.runs (status, created_at, id);
CREATE INDEX runs_by_workflow ON ork.runs (workflow, status, created_at, id);
CREATE INDEX runs_changed ON ork.runs (changed);

-- ordinal: the task's place in its workflow, so that the primary key is the order people see.
-- instances: of a task that has fanned out, how many; item: of an instance, what it is for.
CREATE TABLE ork.tasks (
    run_id           text COLLATE "C" NOT NULL,
    ordinal          integer NOT NULL,
    idx              integer NOT NULL,
    name             text COLLATE "C" NOT NULL,
    status           text COLLATE "C" NOT NULL,
    executor         text COLLATE "C" NOT NULL,
    attempt          integer NOT NULL,
    earlier_attempts integer NOT NULL,
    reason           text,
    cause_name       text COLLATE "C",
    cause_idx        integer,
    failure          text,
    exit_code        bigint,
    dispatched_at    timestamptz,
    started_at       timestamptz,
    finished_at      timestamptz,
    retry_at         timestamptz,
    output_key       text COLLATE "C",
    output_size      bigint,
    output           text,
    instances        integer,
    item             text,
    cache_key        text COLLATE "C",
    changed          bigint NOT NULL,
    PRIMARY KEY (run_id, ordinal, idx)
);
CREATE INDEX tasks_changed ON ork.tasks (run_id, changed);

-- An equal result is found by its key, newest first; tasks without caching are not in it.
CREATE INDEX tasks_cached ON ork.tasks (cache_key, finished_at) WHERE cache_key IS NOT NULL AND status = 'success';

-- waits_for: what an attempt that handed over to external jobs waits for; it takes no slot meanwhile.
CREATE TABLE ork.attempts (
    run_id        text COLLATE "C" NOT NULL,
    ordinal       integer NOT NULL,
    idx           integer NOT NULL,
    number        integer NOT NULL,
    name          text COLLATE "C" NOT NULL,
    status        text COLLATE "C" NOT NULL,
    executor      text COLLATE "C" NOT NULL,
    pool          text COLLATE "C",
    external_name text COLLATE "C" NOT NULL,
    token_hash    text COLLATE "C" NOT NULL,
    dispatched_at timestamptz NOT NULL,
    started_at    timestamptz,
    finished_at   timestamptz,
    exit_code     bigint,
    failure       text,
    closing       text COLLATE "C",
    closing_since timestamptz,
    seq           bigint NOT NULL,
    seen_at       timestamptz,
    waits_for     text,
    is_waiting    boolean NOT NULL,
    PRIMARY KEY (run_id, ordinal, idx, number)
);

-- Limits are counted from these rows; counting costs what is active, never what has been.
CREATE INDEX attempts_active ON ork.attempts (run_id, executor, pool, is_waiting)
    WHERE status IN ('dispatched', 'running');

-- What people asked for. Kept when done, as the record of who did what.
CREATE TABLE ork.commands (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id     text COLLATE "C" NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    asked_by   text NOT NULL,
    task       text,
    everything boolean NOT NULL,
    comment    text,
    asked_at   timestamptz NOT NULL,
    done_at    timestamptz
);
CREATE INDEX commands_waiting ON ork.commands (run_id, id) WHERE done_at IS NULL;
CREATE INDEX commands_of_run ON ork.commands (run_id);

-- What people are to be told, written in the transaction that made it true.
-- due_at: NULL once everybody has been told. sent: those who have been.
CREATE TABLE ork.alerts (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind      text COLLATE "C" NOT NULL,
    workflow  text COLLATE "C" NOT NULL,
    run_id    text COLLATE "C",
    task      text COLLATE "C",
    idx       integer,
    failure   text,
    detail    text,
    raised_at timestamptz NOT NULL,
    due_at    timestamptz,
    tries     integer NOT NULL,
    sent      text[] COLLATE "C" NOT NULL,
    error     text
);
CREATE INDEX alerts_of_run ON ork.alerts (run_id, id) WHERE run_id IS NOT NULL;
CREATE INDEX alerts_due ON ork.alerts (due_at, id) WHERE due_at IS NOT NULL;

-- A token's text is nowhere: its digest is looked up.
CREATE TABLE ork.tokens (
    id         text COLLATE "C" PRIMARY KEY,
    name       text NOT NULL,
    role       text COLLATE "C" NOT NULL,
    digest     text COLLATE "C" NOT NULL UNIQUE,
    created_at timestamptz NOT NULL,
    revoked_at timestamptz
);

CREATE TABLE ork.audit (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      timestamptz NOT NULL,
    by      text NOT NULL,
    action  text COLLATE "C" NOT NULL,
    subject text NOT NULL,
    detail  text
);
