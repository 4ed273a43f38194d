-- The same history as in sqlite.sql: $1 and $2 are its numbers, $3 the workflow, $4 its version, $5 when it began.

-- name: settings
SET synchronous_commit = off;

-- name: numbers
CREATE TEMP TABLE past AS
SELECT 'h' || lpad(to_hex((n * 2654435761) % 17592186044416), 11, '0') AS id, n,
       CASE n % 50 WHEN 7 THEN 'cancelled' WHEN 13 THEN 'failed' WHEN 19 THEN 'failed' WHEN 31 THEN 'failed'
                   WHEN 43 THEN 'failed' ELSE 'success' END AS status,
       CASE WHEN n % 10 = 0 THEN $3::text ELSE 'past' || lpad((n % 41)::text, 2, '0') END AS workflow,
       $4::text AS version,
       to_timestamp($5::float8 + n * 20) AS created_at,
       to_timestamp($5::float8 + n * 20 + 1.25) AS started_at,
       to_timestamp($5::float8 + n * 20 + 9.75) AS finished_at
FROM generate_series($1::bigint, $2::bigint - 1) AS n
ORDER BY 1;

-- name: add_runs
INSERT INTO ork.runs (id, workflow, version, status, trigger, params, created_at, scheduled_for, started_at, finished_at,
                      error, round, priority, key, owner, epoch, attention, changed, fresh)
SELECT id, workflow, version, status, CASE WHEN n % 3 = 0 THEN 'manual' ELSE 'schedule' END, '{"day":"2026-01-01"}',
       created_at, CASE WHEN n % 3 = 0 THEN NULL ELSE created_at END, started_at, finished_at,
       CASE WHEN status = 'failed' THEN 'task load failed' END, 1, 0,
       CASE WHEN n % 3 = 0 THEN 'key-' || n END, NULL, 1, false, n + 2, false
FROM past;

-- name: add_tasks
WITH changes AS (
    INSERT INTO ork.task_changes (run_id, changed, ordinals, idxs) SELECT id, n + 2, '{0,1}', '{-1,-1}' FROM past)
INSERT INTO ork.tasks (run_id, ordinal, idx, name, status, executor, attempt, earlier_attempts, failure, exit_code,
                       dispatched_at, started_at, finished_at, output)
SELECT p.id, t.ordinal, -1, t.name, CASE WHEN t.ordinal = 0 THEN 'success' ELSE p.status END, 'python', 1, 0,
       CASE WHEN t.ordinal = 1 AND p.status = 'failed' THEN '{"kind":"exception","message":"ValueError: no rows","detail":null}' END, 0,
       p.started_at, p.started_at, p.finished_at, '{"rows":12345,"path":"data/day.parquet"}'
FROM past AS p CROSS JOIN (VALUES (0, 'extract'), (1, 'load')) AS t (ordinal, name);

-- name: add_attempts
INSERT INTO ork.attempts (run_id, ordinal, idx, number, name, status, executor, external_name, token_hash, dispatched_at,
                          started_at, finished_at, exit_code, seq, is_waiting)
SELECT p.id, t.ordinal, -1, 1, t.name, CASE WHEN t.ordinal = 0 THEN 'success' ELSE p.status END, 'python',
       'process:' || p.id || '/' || t.ordinal, '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef',
       p.started_at, p.started_at, p.finished_at, 0, 2, false
FROM past AS p CROSS JOIN (VALUES (0, 'extract'), (1, 'load')) AS t (ordinal, name);

-- name: add_commands
INSERT INTO ork.commands (run_id, kind, asked_by, everything, asked_at, done_at)
SELECT id, 'cancel', 'somebody', false, started_at, finished_at FROM past WHERE status = 'cancelled';

-- name: add_alerts
INSERT INTO ork.alerts (kind, workflow, run_id, raised_at, tries, sent)
SELECT 'run', workflow, id, finished_at, 1, '{}' FROM past WHERE status = 'failed';

-- name: forget_numbers
DROP TABLE past;

-- name: count_changes
SELECT setval('ork.changes', greatest($1::bigint + 2, (SELECT last_value FROM ork.changes)));

-- name: gather_statistics
-- As autovacuum would have done by the time so many runs have ended.
ANALYZE ork.runs, ork.tasks, ork.attempts, ork.commands, ork.alerts;
