-- Runs that ended long ago, as they would have been left behind: numbers :first up to :last, twenty seconds apart, their
-- ids in no order. Every tenth belongs to the workflow that is measured, the rest to forty others; eight of a hundred
-- failed and two were cancelled. Each has two tasks with an attempt each.

-- name: settings
PRAGMA journal_mode = WAL;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -200000;

-- name: begin
BEGIN IMMEDIATE;

-- name: commit
COMMIT;

-- name: indexes
-- Made again when everything is in: that is several times quicker than keeping them up to date.
SELECT name, sql FROM sqlite_master
WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN ('runs', 'tasks', 'attempts', 'commands', 'alerts');

-- name: drop_index
DROP INDEX NAME;

-- name: numbers
CREATE TEMP TABLE past AS
WITH RECURSIVE number (n) AS (VALUES (:first) UNION ALL SELECT n + 1 FROM number WHERE n + 1 < :last)
SELECT printf('h%011x', (n * 2654435761) % 17592186044416) AS id, n,
       CASE n % 50 WHEN 7 THEN 'cancelled' WHEN 13 THEN 'failed' WHEN 19 THEN 'failed' WHEN 31 THEN 'failed'
                   WHEN 43 THEN 'failed' ELSE 'success' END AS status,
       iif(n % 10 = 0, :workflow, printf('past%02d', n % 41)) AS workflow,
       strftime('%Y-%m-%dT%H:%M:%S.000000Z', :begin + n * 20, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%S.250000Z', :begin + n * 20 + 1, 'unixepoch') AS started_at,
       strftime('%Y-%m-%dT%H:%M:%S.750000Z', :begin + n * 20 + 9, 'unixepoch') AS finished_at
FROM number ORDER BY id;

-- name: add_runs
INSERT INTO runs (id, workflow, version, status, trigger, params, created_at, scheduled_for, started_at, finished_at,
                  error, round, priority, key, owner, epoch, attention, changed, fresh)
SELECT id, workflow, :version, status, iif(n % 3, 'schedule', 'manual'), '{"day":"2026-01-01"}', created_at,
       iif(n % 3, created_at, NULL), started_at, finished_at, iif(status = 'failed', 'task load failed', NULL), 1, 0,
       iif(n % 3, NULL, 'key-' || n), NULL, 1, 0, n + 1, 0
FROM past ORDER BY id;

-- name: add_tasks
INSERT INTO tasks (run_id, ordinal, idx, name, status, executor, attempt, earlier_attempts, failure, exit_code,
                   dispatched_at, started_at, finished_at, output, changed)
SELECT p.id, t.ordinal, -1, t.name, iif(t.ordinal, p.status, 'success'), 'python', 1, 0,
       iif(t.ordinal AND p.status = 'failed', '{"kind":"exception","message":"ValueError: no rows","detail":null}', NULL), 0,
       p.started_at, p.started_at, p.finished_at, '{"rows":12345,"path":"data/day.parquet"}', p.n + 1
FROM past AS p CROSS JOIN (SELECT 0 AS ordinal, 'extract' AS name UNION ALL SELECT 1, 'load') AS t
ORDER BY p.id, t.ordinal;

-- name: add_attempts
INSERT INTO attempts (run_id, ordinal, idx, number, name, status, executor, external_name, token_hash, dispatched_at,
                      started_at, finished_at, exit_code, seq)
SELECT t.run_id, t.ordinal, -1, 1, t.name, t.status, 'python', 'process:' || t.run_id || '/' || t.ordinal,
       '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', t.dispatched_at, t.started_at, t.finished_at, 0, 2
FROM past AS p CROSS JOIN tasks AS t ON t.run_id = p.id
ORDER BY t.run_id, t.ordinal;

-- name: add_commands
INSERT INTO commands (run_id, kind, asked_by, everything, asked_at, done_at)
SELECT id, 'cancel', 'somebody', 0, started_at, finished_at FROM past WHERE status = 'cancelled';

-- name: add_alerts
INSERT INTO alerts (kind, workflow, run_id, raised_at, tries, sent)
SELECT 'run', workflow, id, finished_at, 1, '[]' FROM past WHERE status = 'failed';

-- name: forget_numbers
DROP TABLE past;

-- name: count_changes
UPDATE counter SET changed = max(changed, :last + 1);
