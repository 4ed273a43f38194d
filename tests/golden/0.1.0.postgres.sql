SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

CREATE SCHEMA ork;

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE ork.alerts (
    id bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    workflow text NOT NULL COLLATE pg_catalog."C",
    run_id text COLLATE pg_catalog."C",
    task text COLLATE pg_catalog."C",
    idx integer,
    failure text,
    detail text,
    raised_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone,
    tries integer NOT NULL,
    sent text[] NOT NULL COLLATE pg_catalog."C",
    error text
);

ALTER TABLE ork.alerts ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME ork.alerts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE ork.attempts (
    run_id text NOT NULL COLLATE pg_catalog."C",
    ordinal integer NOT NULL,
    idx integer NOT NULL,
    number integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    executor text NOT NULL COLLATE pg_catalog."C",
    pool text COLLATE pg_catalog."C",
    external_name text NOT NULL COLLATE pg_catalog."C",
    token_hash text NOT NULL COLLATE pg_catalog."C",
    dispatched_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    exit_code bigint,
    failure text,
    closing text COLLATE pg_catalog."C",
    closing_since timestamp with time zone,
    seq bigint NOT NULL,
    seen_at timestamp with time zone,
    waits_for text,
    is_waiting boolean NOT NULL
);

CREATE TABLE ork.audit (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    by text NOT NULL,
    action text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL,
    detail text
);

ALTER TABLE ork.audit ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME ork.audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE ork.buckets (
    name text NOT NULL COLLATE pg_catalog."C",
    tokens double precision NOT NULL,
    at timestamp with time zone NOT NULL
);

CREATE SEQUENCE ork.changes
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE ork.commands (
    id bigint NOT NULL,
    run_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    asked_by text NOT NULL,
    task text,
    everything boolean NOT NULL,
    comment text,
    asked_at timestamp with time zone NOT NULL,
    done_at timestamp with time zone
);

ALTER TABLE ork.commands ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME ork.commands_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE ork.limits (
    name text NOT NULL COLLATE pg_catalog."C",
    slots integer NOT NULL
);

CREATE TABLE ork.meta (
    name text NOT NULL COLLATE pg_catalog."C",
    value bytea NOT NULL
);

CREATE TABLE ork.pulse (
    slot smallint NOT NULL,
    number bigint NOT NULL
)
WITH (fillfactor='10');

CREATE TABLE ork.rates (
    name text NOT NULL COLLATE pg_catalog."C",
    count integer NOT NULL,
    seconds double precision NOT NULL
);

CREATE TABLE ork.runs (
    id text NOT NULL COLLATE pg_catalog."C",
    workflow text NOT NULL COLLATE pg_catalog."C",
    version text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    trigger text NOT NULL COLLATE pg_catalog."C",
    params text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    scheduled_for timestamp with time zone,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    error text,
    round integer NOT NULL,
    priority integer NOT NULL,
    cancel_requested_at timestamp with time zone,
    note text,
    fresh boolean NOT NULL,
    parent text COLLATE pg_catalog."C",
    key text COLLATE pg_catalog."C",
    owner text COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    attention boolean NOT NULL,
    changed bigint NOT NULL
);

CREATE TABLE ork.schedulers (
    id text NOT NULL COLLATE pg_catalog."C",
    identity text NOT NULL,
    kind text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    lease_until timestamp with time zone NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE ork.schema (
    number integer NOT NULL
);

CREATE TABLE ork.tasks (
    run_id text NOT NULL COLLATE pg_catalog."C",
    ordinal integer NOT NULL,
    idx integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    executor text NOT NULL COLLATE pg_catalog."C",
    attempt integer NOT NULL,
    earlier_attempts integer NOT NULL,
    reason text,
    cause_name text COLLATE pg_catalog."C",
    cause_idx integer,
    failure text,
    exit_code bigint,
    dispatched_at timestamp with time zone,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    retry_at timestamp with time zone,
    output_key text COLLATE pg_catalog."C",
    output_size bigint,
    output text,
    instances integer,
    item text,
    cache_key text COLLATE pg_catalog."C",
    changed bigint NOT NULL
);

CREATE TABLE ork.tokens (
    id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    role text NOT NULL COLLATE pg_catalog."C",
    digest text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone
);

CREATE TABLE ork.versions (
    id text NOT NULL COLLATE pg_catalog."C",
    workflow text NOT NULL COLLATE pg_catalog."C",
    root text NOT NULL,
    source text,
    document text NOT NULL,
    saved_at timestamp with time zone NOT NULL,
    saved bigint NOT NULL
);

CREATE TABLE ork.workflows (
    name text NOT NULL COLLATE pg_catalog."C",
    version text NOT NULL COLLATE pg_catalog."C",
    enabled boolean NOT NULL,
    deployed_at timestamp with time zone NOT NULL,
    origin text,
    schedule text,
    max_active_runs integer,
    fires boolean NOT NULL,
    next_fire timestamp with time zone
);

INSERT INTO ork.alerts OVERRIDING SYSTEM VALUE VALUES (1, 'run', 'flow', 'failed', NULL, NULL, '{"kind":"exit","message":"exit 3","detail":{"tail":["no"]}}', NULL, '2026-03-01 12:00:00.25+00', '2026-03-01 12:00:00.25+00', 0, '{}', NULL);

INSERT INTO ork.attempts VALUES ('done', 0, -1, 1, 'extract', 'success', 'process', NULL, 'name of done/extract/0/1', 'hash', '2026-03-01 12:00:00.25+00', NULL, NULL, 0, NULL, NULL, NULL, 0, NULL, NULL, false);
INSERT INTO ork.attempts VALUES ('busy', 0, -1, 1, 'extract', 'dispatched', 'process', 'api', 'name of busy/extract/0/1', 'hash', '2026-03-01 12:00:00.25+00', NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, false);

INSERT INTO ork.commands OVERRIDING SYSTEM VALUE VALUES (1, 'busy', 'pause', 'eve', NULL, false, NULL, '2026-03-01 12:00:00.25+00', NULL);

INSERT INTO ork.limits VALUES ('*', 8);
INSERT INTO ork.limits VALUES ('pool:api', 2);

INSERT INTO ork.meta VALUES ('signing_key', '\xf2590fee8d90f1222cf70e403dfefc2d8cf743538ab53282216a717a5a1200e5');

INSERT INTO ork.pulse VALUES (0, 0);
INSERT INTO ork.pulse VALUES (1, 0);
INSERT INTO ork.pulse VALUES (2, 0);
INSERT INTO ork.pulse VALUES (3, 0);
INSERT INTO ork.pulse VALUES (4, 0);
INSERT INTO ork.pulse VALUES (5, 0);
INSERT INTO ork.pulse VALUES (6, 0);
INSERT INTO ork.pulse VALUES (7, 0);
INSERT INTO ork.pulse VALUES (8, 0);
INSERT INTO ork.pulse VALUES (9, 0);
INSERT INTO ork.pulse VALUES (10, 0);
INSERT INTO ork.pulse VALUES (12, 0);
INSERT INTO ork.pulse VALUES (13, 0);
INSERT INTO ork.pulse VALUES (14, 0);
INSERT INTO ork.pulse VALUES (15, 0);
INSERT INTO ork.pulse VALUES (11, 6);

INSERT INTO ork.runs VALUES ('done', 'flow', 'version-of-flow', 'success', 'manual', '{"day":1}', '2026-03-01 12:00:00.25+00', NULL, '2026-03-01 12:00:00.25+00', '2026-03-01 12:00:02.25+00', NULL, 1, 0, NULL, NULL, false, NULL, NULL, NULL, 1, false, 4);
INSERT INTO ork.runs VALUES ('failed', 'flow', 'version-of-flow', 'failed', 'manual', '{"day":1}', '2026-03-01 12:00:00.25+00', NULL, '2026-03-01 12:00:00.25+00', '2026-03-01 12:00:02.25+00', NULL, 1, 0, NULL, NULL, false, NULL, NULL, NULL, 1, false, 4);
INSERT INTO ork.runs VALUES ('busy', 'flow', 'version-of-flow', 'running', 'manual', '{"day":1}', '2026-03-01 12:00:00.25+00', NULL, '2026-03-01 12:00:00.25+00', NULL, NULL, 1, 0, NULL, NULL, false, NULL, NULL, 'ann', 1, true, 5);
INSERT INTO ork.runs VALUES ('pending', 'flow', 'version-of-flow', 'pending', 'manual', '{}', '2026-03-01 12:00:05.25+00', NULL, NULL, NULL, NULL, 1, 0, NULL, NULL, false, NULL, 'k', NULL, 0, true, 6);

INSERT INTO ork.schedulers VALUES ('ann', 'identity of ann', 'scheduler', '2026-03-01 12:00:00.25+00', '2026-11-15 12:19:51.256023+00');

INSERT INTO ork.schema VALUES (1);

INSERT INTO ork.tasks VALUES ('busy', 1, -1, 'load', 'pending', 'process', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 4);
INSERT INTO ork.tasks VALUES ('done', 0, -1, 'extract', 'success', 'process', 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"rows":12}', NULL, NULL, NULL, 4);
INSERT INTO ork.tasks VALUES ('failed', 0, -1, 'extract', 'failed', 'process', 0, 0, NULL, NULL, NULL, '{"kind":"exit","message":"exit 3","detail":{"tail":["no"]}}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 4);
INSERT INTO ork.tasks VALUES ('busy', 0, -1, 'extract', 'dispatched', 'process', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-03-01 12:00:00.25+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 4);

INSERT INTO ork.versions VALUES ('version-of-flow', 'flow', '/project', 'flow.yaml', '{"name":"flow","schedule":{"cron":"0 2 * * *","timezone":"Europe/Prague"},"tasks":[{"name":"extract","executor":"process","action":{"command":[{"const":"true"}]}},{"name":"load","executor":"process","action":{"command":[{"const":"true"}]}}]}', '2026-03-01 12:00:00.25+00', 2);

INSERT INTO ork.workflows VALUES ('flow', 'version-of-flow', true, '2026-03-01 12:00:00.25+00', 'golden', '["0 2 * * *","Europe/Prague","none",true]', NULL, true, '2026-03-01 13:00:00.25+00');

SELECT pg_catalog.setval('ork.alerts_id_seq', 1, true);

SELECT pg_catalog.setval('ork.audit_id_seq', 1, false);

SELECT pg_catalog.setval('ork.changes', 6, true);

SELECT pg_catalog.setval('ork.commands_id_seq', 1, true);

ALTER TABLE ONLY ork.alerts
    ADD CONSTRAINT alerts_pkey PRIMARY KEY (id);

ALTER TABLE ONLY ork.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (run_id, ordinal, idx, number);

ALTER TABLE ONLY ork.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);

ALTER TABLE ONLY ork.buckets
    ADD CONSTRAINT buckets_pkey PRIMARY KEY (name);

ALTER TABLE ONLY ork.commands
    ADD CONSTRAINT commands_pkey PRIMARY KEY (id);

ALTER TABLE ONLY ork.limits
    ADD CONSTRAINT limits_pkey PRIMARY KEY (name);

ALTER TABLE ONLY ork.meta
    ADD CONSTRAINT meta_pkey PRIMARY KEY (name);

ALTER TABLE ONLY ork.pulse
    ADD CONSTRAINT pulse_pkey PRIMARY KEY (slot);

ALTER TABLE ONLY ork.rates
    ADD CONSTRAINT rates_pkey PRIMARY KEY (name);

ALTER TABLE ONLY ork.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (id);

ALTER TABLE ONLY ork.schedulers
    ADD CONSTRAINT schedulers_pkey PRIMARY KEY (id);

ALTER TABLE ONLY ork.tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (run_id, ordinal, idx);

ALTER TABLE ONLY ork.tokens
    ADD CONSTRAINT tokens_digest_key UNIQUE (digest);

ALTER TABLE ONLY ork.tokens
    ADD CONSTRAINT tokens_pkey PRIMARY KEY (id);

ALTER TABLE ONLY ork.versions
    ADD CONSTRAINT versions_pkey PRIMARY KEY (id);

ALTER TABLE ONLY ork.workflows
    ADD CONSTRAINT workflows_pkey PRIMARY KEY (name);

CREATE INDEX alerts_due ON ork.alerts USING btree (due_at, id) WHERE (due_at IS NOT NULL);

CREATE INDEX alerts_of_run ON ork.alerts USING btree (run_id, id) WHERE (run_id IS NOT NULL);

CREATE INDEX attempts_active ON ork.attempts USING btree (run_id, executor, pool, is_waiting) WHERE (status = ANY (ARRAY['dispatched'::text, 'running'::text]));

CREATE INDEX commands_of_run ON ork.commands USING btree (run_id);

CREATE INDEX commands_waiting ON ork.commands USING btree (run_id, id) WHERE (done_at IS NULL);

CREATE INDEX runs_by_status ON ork.runs USING btree (status, created_at, id);

CREATE INDEX runs_by_workflow ON ork.runs USING btree (workflow, status, created_at, id);

CREATE INDEX runs_changed ON ork.runs USING btree (changed);

CREATE UNIQUE INDEX runs_key ON ork.runs USING btree (workflow, key) WHERE (key IS NOT NULL);

CREATE INDEX runs_occupying ON ork.runs USING btree (workflow) WHERE ((status = ANY (ARRAY['running'::text, 'paused'::text])) OR ((status = 'pending'::text) AND (owner IS NOT NULL)));

CREATE INDEX runs_owned ON ork.runs USING btree (owner) WHERE (owner IS NOT NULL);

CREATE INDEX runs_queued ON ork.runs USING btree (workflow) WHERE (attention AND (owner IS NULL) AND (status = 'pending'::text));

CREATE UNIQUE INDEX runs_slot ON ork.runs USING btree (workflow, scheduled_for) WHERE ((scheduled_for IS NOT NULL) AND (trigger = ANY (ARRAY['schedule'::text, 'backfill'::text])));

CREATE INDEX runs_waiting ON ork.runs USING btree (priority DESC, created_at, id) WHERE (attention AND (owner IS NULL));

CREATE INDEX tasks_cached ON ork.tasks USING btree (cache_key, finished_at) WHERE ((cache_key IS NOT NULL) AND (status = 'success'::text));

CREATE INDEX tasks_changed ON ork.tasks USING btree (run_id, changed);

CREATE INDEX versions_of_workflow ON ork.versions USING btree (workflow, saved DESC);

CREATE INDEX workflows_due ON ork.workflows USING btree (next_fire) WHERE fires;
