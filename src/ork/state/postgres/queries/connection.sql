-- name: begin_writing
BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE;

-- name: begin_reading
BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY;

-- name: commit
COMMIT;

-- name: roll_back
ROLLBACK;

-- name: limit_time
-- Behind a pooler the limits of a session cannot be set when it begins.
SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true),
       set_config('idle_in_transaction_session_timeout', $3, true);

-- name: end_silent_sessions
-- Of our own sessions those that have been silent for so many seconds in the middle of a request, with a transaction open:
-- their process is frozen, no limit of Postgres holds there, and what they locked would stay locked.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND application_name = 'ork store'
  AND state = 'active' AND wait_event = 'ClientRead' AND pid <> pg_backend_pid()
  AND query_start < clock_timestamp() - make_interval(secs => $1);

-- name: next_change
-- Until the transaction ends, an advisory lock shows the last number handed out before its own: that all numbers up to
-- there are settled is all that can be said while it is under way (see `settled_changes`).
WITH announced AS MATERIALIZED (
    SELECT pg_advisory_xact_lock_shared(5206635::bigint << 40 | last_value) FROM ork.changes)
SELECT nextval('ork.changes') FROM announced;

-- name: tell_others
WITH counted AS (UPDATE ork.pulse SET number = number + 1 WHERE slot = $1 RETURNING slot)
SELECT pg_notify('ork', $2) FROM counted;

-- name: feel_pulse
SELECT sum(number)::bigint FROM ork.pulse;

-- name: last_change
SELECT last_value FROM ork.changes;

-- name: changes_under_way
-- The lowest number announced in this database, if any.
SELECT min((classid::bigint << 32 | objid::bigint) & ((1::bigint << 40) - 1)) FROM pg_locks
WHERE locktype = 'advisory' AND objsubid = 1 AND (classid::bigint << 32 | objid::bigint) >> 40 = 5206635
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
