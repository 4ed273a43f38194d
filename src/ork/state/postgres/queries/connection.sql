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
SELECT ork.end_silent_sessions($1);

-- name: next_change
SELECT ork.next_change();

-- name: tell_others
SELECT ork.tell_others($1, $2);

-- name: feel_pulse
SELECT sum(number)::bigint FROM ork.pulse;

-- name: last_change
SELECT last_value FROM ork.changes;

-- name: changes_under_way
-- The lowest number announced in this database, if any.
SELECT min((classid::bigint << 32 | objid::bigint) & ((1::bigint << 40) - 1)) FROM pg_locks
WHERE locktype = 'advisory' AND objsubid = 1 AND (classid::bigint << 32 | objid::bigint) >> 40 = 5206635
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
