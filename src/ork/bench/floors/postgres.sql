-- The same bare minimum of rows as in sqlite.sql, and as many of them to a statement as there are.

-- name: create_database
-- No parameters are possible here; the name is made of letters and digits.
CREATE DATABASE NAME;

-- name: drop_database
DROP DATABASE IF EXISTS NAME WITH (FORCE);

-- name: tables
CREATE TABLE task (
    run text NOT NULL, name text NOT NULL, status text NOT NULL, attempt integer NOT NULL,
    dispatched_at timestamptz, started_at timestamptz, finished_at timestamptz, output text,
    PRIMARY KEY (run, name)
);
CREATE TABLE attempt (
    run text NOT NULL, name text NOT NULL, number integer NOT NULL, status text NOT NULL, token text NOT NULL,
    dispatched_at timestamptz, started_at timestamptz, finished_at timestamptz, exit_code integer,
    PRIMARY KEY (run, name, number)
);

-- name: create_task
INSERT INTO task (run, name, status, attempt) SELECT 'r1', name, 'pending', 0 FROM unnest($1::text[]) AS name;

-- name: dispatch_task
UPDATE task SET status = 'dispatched', attempt = 1, dispatched_at = clock_timestamp()
WHERE run = 'r1' AND name = ANY ($1::text[]);

-- name: dispatch_attempt
INSERT INTO attempt (run, name, number, status, token, dispatched_at)
SELECT 'r1', name, 1, 'dispatched', '0123456789abcdef0123456789abcdef', clock_timestamp() FROM unnest($1::text[]) AS name;

-- name: start_task
UPDATE task SET status = 'running', started_at = clock_timestamp() WHERE run = 'r1' AND name = ANY ($1::text[]);

-- name: start_attempt
UPDATE attempt SET status = 'running', started_at = clock_timestamp()
WHERE run = 'r1' AND number = 1 AND name = ANY ($1::text[]);

-- name: finish_task
UPDATE task SET status = 'success', finished_at = clock_timestamp(), output = '{"n": 1}'
WHERE run = 'r1' AND name = ANY ($1::text[]);

-- name: finish_attempt
UPDATE attempt SET status = 'success', exit_code = 0, finished_at = clock_timestamp()
WHERE run = 'r1' AND number = 1 AND name = ANY ($1::text[]);
