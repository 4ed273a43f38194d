-- name: touch_run
-- The fence. It writes a row only for the present owner at the present epoch, and not where the run would
-- succeed or fail over the head of a cancel that its owner has not read. (Where it has ended before, that was meant for an
-- earlier round.)
UPDATE runs SET changed = :changed
WHERE id = :run AND owner = :owner AND epoch = :epoch
  AND NOT (:unaware AND cancel_requested_at IS NOT NULL AND status NOT IN ('success', 'failed', 'cancelled') AND EXISTS (
      SELECT 1 FROM commands WHERE run_id = :run AND kind = 'cancel' AND done_at IS NULL));

-- name: touched_run
SELECT version, status FROM runs WHERE id = ?;

-- name: is_owned
SELECT 1 FROM runs WHERE id = :run AND owner = :owner AND epoch = :epoch;

-- name: write_run
-- A cancel that came while its owner was deciding must survive a row written without it.
UPDATE runs SET
    status = :status, started_at = :started_at, finished_at = :finished_at, error = :error, round = :round,
    priority = :priority, note = :note,
    attention = iif(:status IN ('pending', 'running'), 1, attention),
    cancel_requested_at = iif(
        :cancel_requested_at IS NULL AND EXISTS (
            SELECT 1 FROM commands WHERE run_id = :id AND kind = 'cancel' AND done_at IS NULL),
        cancel_requested_at, :cancel_requested_at)
WHERE id = :id;

-- name: write_task
INSERT INTO tasks (run_id, ordinal, idx, name, status, executor, attempt, earlier_attempts, reason, cause_name,
                   cause_idx, failure, exit_code, dispatched_at, started_at, finished_at, retry_at, output_key,
                   output_size, output, instances, item, cache_key, changed)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (run_id, ordinal, idx) DO UPDATE SET
    status = excluded.status, executor = excluded.executor, attempt = excluded.attempt,
    earlier_attempts = excluded.earlier_attempts, reason = excluded.reason, cause_name = excluded.cause_name,
    cause_idx = excluded.cause_idx, failure = excluded.failure, exit_code = excluded.exit_code,
    dispatched_at = excluded.dispatched_at, started_at = excluded.started_at, finished_at = excluded.finished_at,
    retry_at = excluded.retry_at, output_key = excluded.output_key, output_size = excluded.output_size,
    output = excluded.output, instances = excluded.instances, item = excluded.item, cache_key = excluded.cache_key,
    changed = excluded.changed;

-- name: write_attempt
INSERT INTO attempts (run_id, ordinal, idx, number, name, status, executor, pool, external_name, token_hash,
                      dispatched_at, started_at, finished_at, exit_code, failure, closing, closing_since, seq, seen_at,
                      waits_for, is_waiting)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (run_id, ordinal, idx, number) DO UPDATE SET
    status = excluded.status, executor = excluded.executor, pool = excluded.pool,
    external_name = excluded.external_name, token_hash = excluded.token_hash,
    dispatched_at = excluded.dispatched_at, started_at = excluded.started_at, finished_at = excluded.finished_at,
    exit_code = excluded.exit_code, failure = excluded.failure, closing = excluded.closing,
    closing_since = excluded.closing_since, seq = excluded.seq, seen_at = excluded.seen_at,
    waits_for = excluded.waits_for, is_waiting = excluded.is_waiting;

-- name: add_task
-- From here on: partial updates, in statements that name only the columns that change. Every value that is
-- handed over costs as much as finding the row does.
INSERT INTO tasks (run_id, ordinal, idx, name, status, executor, attempt, earlier_attempts, item, changed)
VALUES (?, ?, ?, ?, 'pending', ?, 0, 0, ?, ?)
ON CONFLICT DO NOTHING;

-- name: launch_task
UPDATE tasks SET
    status = 'dispatched', attempt = ?, dispatched_at = ?, started_at = NULL, finished_at = NULL, exit_code = NULL,
    retry_at = NULL, changed = ?
WHERE run_id = ? AND ordinal = ? AND idx = ? AND status = 'pending';

-- name: start_task
UPDATE tasks SET
    status = 'running', started_at = ?, changed = ?,
    reason = NULL, cause_name = NULL, cause_idx = NULL, failure = NULL, exit_code = NULL, finished_at = NULL,
    retry_at = NULL, output_key = NULL, output_size = NULL, output = NULL
WHERE run_id = ? AND ordinal = ? AND idx = ? AND attempt = ?;

-- name: finish_task
UPDATE tasks SET
    status = 'success', started_at = ?, finished_at = ?, exit_code = ?, output = ?, changed = ?,
    reason = NULL, cause_name = NULL, cause_idx = NULL, failure = NULL, retry_at = NULL, output_key = NULL,
    output_size = NULL
WHERE run_id = ? AND ordinal = ? AND idx = ? AND attempt = ?;

-- name: launch_attempt
INSERT INTO attempts (run_id, ordinal, idx, number, name, status, executor, pool, external_name, token_hash,
                      dispatched_at, seq, is_waiting)
VALUES (?, ?, ?, ?, ?, 'dispatched', ?, ?, ?, ?, ?, 0, 0)
ON CONFLICT (run_id, ordinal, idx, number) DO UPDATE SET
    status = excluded.status, executor = excluded.executor, pool = excluded.pool,
    external_name = excluded.external_name, token_hash = excluded.token_hash,
    dispatched_at = excluded.dispatched_at, started_at = NULL, finished_at = NULL, exit_code = NULL, failure = NULL,
    closing = NULL, closing_since = NULL, seq = 0, seen_at = NULL, waits_for = NULL, is_waiting = 0;

-- name: place_in_group
UPDATE attempts SET group_id = ?, group_index = ?, parallelism = ?
WHERE run_id = ? AND ordinal = ? AND idx = ? AND number = ?;

-- name: start_attempt
UPDATE attempts SET
    status = 'running', started_at = ?, seen_at = ?, pool = ?, seq = ?,
    finished_at = NULL, exit_code = NULL, failure = NULL, closing = NULL, closing_since = NULL, waits_for = NULL,
    is_waiting = 0
WHERE run_id = ? AND ordinal = ? AND idx = ? AND number = ?;

-- name: finish_attempt
UPDATE attempts SET
    status = 'success', started_at = ?, seen_at = ?, pool = ?, seq = ?, finished_at = ?, exit_code = ?,
    failure = NULL, closing = NULL, closing_since = NULL, waits_for = NULL, is_waiting = 0
WHERE run_id = ? AND ordinal = ? AND idx = ? AND number = ?;

-- name: finish_command
UPDATE commands SET done_at = ? WHERE id = ? AND run_id = ?;

-- name: write_alert
INSERT INTO alerts (kind, workflow, run_id, task, idx, failure, raised_at, due_at, tries, sent)
SELECT :kind, workflow, id, :task, :idx, :failure, :now, :now, 0, '[]' FROM runs WHERE id = :run;

-- name: settle_run
-- Whether a run that has ended or is paused still needs an owner follows from rows, so it cannot be forgotten.
UPDATE runs SET
    owner = iif(:release, NULL, owner),
    attention = status IN ('pending', 'running')
        OR EXISTS (SELECT 1 FROM commands WHERE run_id = :run AND done_at IS NULL)
        OR (status = 'paused' AND EXISTS (
            SELECT 1 FROM attempts INDEXED BY attempts_active
            WHERE run_id = :run AND status IN ('dispatched', 'running')))
WHERE id = :run;

-- name: list_limits
SELECT name, slots FROM limits ORDER BY name;

-- name: count_active
-- A walk over the index of active attempts: it costs what is active now. Counted for each run first, which is the order
-- of the index, so that few rows are left to be sorted.
-- A group holds as many slots as its attempts run at the same time, or fewer when fewer are left.
SELECT executor, pool, sum(number) FROM (
    SELECT executor, pool, coalesce(min(parallelism, count(*)), count(*)) AS number
    FROM attempts INDEXED BY attempts_active
    WHERE status IN ('dispatched', 'running') AND is_waiting = 0
    GROUP BY run_id, executor, pool, group_id, parallelism)
GROUP BY executor, pool;

-- name: list_rates
SELECT name, count, seconds FROM rates ORDER BY name;

-- name: get_bucket
SELECT tokens, boot, at FROM buckets WHERE name = ?;

-- name: write_bucket
INSERT INTO buckets (name, tokens, boot, at) VALUES (?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET tokens = excluded.tokens, boot = excluded.boot, at = excluded.at;
