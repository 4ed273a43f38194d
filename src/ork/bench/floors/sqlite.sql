-- The bare minimum of rows that make a task durable: what any engine on this store has to write.

-- name: pragmas
-- As the real store opens its file with `durability: normal`.
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;

-- name: tables
CREATE TABLE task (
    run TEXT NOT NULL, name TEXT NOT NULL, status TEXT NOT NULL, attempt INTEGER NOT NULL,
    dispatched_at TEXT, started_at TEXT, finished_at TEXT, output TEXT,
    PRIMARY KEY (run, name)
) WITHOUT ROWID;
CREATE TABLE attempt (
    run TEXT NOT NULL, name TEXT NOT NULL, number INTEGER NOT NULL, status TEXT NOT NULL, token TEXT NOT NULL,
    dispatched_at TEXT, started_at TEXT, finished_at TEXT, exit_code INTEGER,
    PRIMARY KEY (run, name, number)
) WITHOUT ROWID;

-- name: create_task
INSERT INTO task (run, name, status, attempt) VALUES ('r1', ?, 'pending', 0);

-- name: dispatch_task
UPDATE task SET status = 'dispatched', attempt = 1, dispatched_at = '2026-01-01T00:00:00.000000Z'
WHERE run = 'r1' AND name = ?;

-- name: dispatch_attempt
INSERT INTO attempt (run, name, number, status, token, dispatched_at)
VALUES ('r1', ?, 1, 'dispatched', '0123456789abcdef0123456789abcdef', '2026-01-01T00:00:00.000000Z');

-- name: start_task
UPDATE task SET status = 'running', started_at = '2026-01-01T00:00:00.000000Z' WHERE run = 'r1' AND name = ?;

-- name: start_attempt
UPDATE attempt SET status = 'running', started_at = '2026-01-01T00:00:00.000000Z'
WHERE run = 'r1' AND name = ? AND number = 1;

-- name: finish_task
UPDATE task SET status = 'success', finished_at = '2026-01-01T00:00:00.000000Z', output = '{"n": 1}'
WHERE run = 'r1' AND name = ?;

-- name: finish_attempt
UPDATE attempt SET status = 'success', exit_code = 0, finished_at = '2026-01-01T00:00:00.000000Z'
WHERE run = 'r1' AND name = ? AND number = 1;

-- name: begin
BEGIN IMMEDIATE;

-- name: commit
COMMIT;
