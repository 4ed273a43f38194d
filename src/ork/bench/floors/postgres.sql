-- The same bare minimum of rows as in sqlite.sql, a hundred tasks to a statement that is a transaction of its own.

-- name: settings
-- Every row is found by its key, whatever the planner believes of tables that nobody has analyzed.
SET plan_cache_mode = force_generic_plan; SET jit = off;
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;

-- name: tables
-- Half of each page is left free, so that a change writes no index; and a key is one column.
CREATE TABLE task (
    run text NOT NULL, name text NOT NULL, status text NOT NULL, attempt integer NOT NULL,
    dispatched_at timestamptz, started_at timestamptz, finished_at timestamptz, output text,
    PRIMARY KEY (name)
) WITH (fillfactor = 50);
CREATE TABLE attempt (
    run text NOT NULL, name text NOT NULL, number integer NOT NULL, status text NOT NULL, token text NOT NULL,
    dispatched_at timestamptz, started_at timestamptz, finished_at timestamptz, exit_code integer,
    PRIMARY KEY (name)
) WITH (fillfactor = 50);

-- name: create
INSERT INTO task (run, name, status, attempt) SELECT 'r1', name, 'pending', 0 FROM unnest($1::text[]) AS name;

-- name: dispatch
WITH tasks AS (
    UPDATE task SET status = 'dispatched', attempt = 1, dispatched_at = clock_timestamp()
    FROM unnest($1::text[]) AS n (name) WHERE task.name = n.name)
INSERT INTO attempt (run, name, number, status, token, dispatched_at)
SELECT 'r1', name, 1, 'dispatched', '0123456789abcdef0123456789abcdef', clock_timestamp() FROM unnest($1::text[]) AS name;

-- name: start
WITH tasks AS (
    UPDATE task SET status = 'running', started_at = clock_timestamp()
    FROM unnest($1::text[]) AS n (name) WHERE task.name = n.name)
UPDATE attempt SET status = 'running', started_at = clock_timestamp()
FROM unnest($1::text[]) AS n (name) WHERE attempt.name = n.name;

-- name: finish
WITH tasks AS (
    UPDATE task SET status = 'success', finished_at = clock_timestamp(), output = '{"n": 1}'
    FROM unnest($1::text[]) AS n (name) WHERE task.name = n.name)
UPDATE attempt SET status = 'success', exit_code = 0, finished_at = clock_timestamp()
FROM unnest($1::text[]) AS n (name) WHERE attempt.name = n.name;
