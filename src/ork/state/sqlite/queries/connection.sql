-- name: settings
-- A page cache of 16 MB at most; sorting never touches the disk. Fewer, larger checkpoints, because each one
-- waits for the disk; the log file is cut back after a burst. On macOS, fsync alone stops at the disk's own cache.
PRAGMA cache_size = -16000;
PRAGMA temp_store = MEMORY;
PRAGMA wal_autocheckpoint = 4000;
PRAGMA journal_size_limit = 67108864;
PRAGMA fullfsync = ON;

-- name: durability_normal
-- Nothing is lost when a process dies.
PRAGMA synchronous = NORMAL;

-- name: durability_full
-- Nothing is lost when the power goes.
PRAGMA synchronous = FULL;

-- name: wait_for_locks
PRAGMA busy_timeout = MILLISECONDS;

-- name: keep_the_log
-- No commit moves what is in the log into the database, which waits for the disk.
PRAGMA wal_autocheckpoint = 0;

-- name: empty_the_log
PRAGMA wal_autocheckpoint = 4000;

-- name: use_write_ahead_log
-- Kept in the file. Readers and the one writer do not wait for each other.
PRAGMA journal_mode = WAL;

-- name: begin_writing
-- The write lock first: two writers can never deadlock over what they have read.
BEGIN IMMEDIATE;

-- name: begin_reading
BEGIN;

-- name: begin_alone
-- Nobody else reads or writes: for migrations.
BEGIN EXCLUSIVE;

-- name: commit
COMMIT;

-- name: roll_back
ROLLBACK;
