-- name: neighbours
SELECT wanted.value,
       (SELECT max(id) FROM runs WHERE id < wanted.value),
       (SELECT min(id) FROM runs WHERE id > wanted.value)
FROM json_each(:ids) AS wanted;

-- name: find_runs
-- U+10FFFF sorts after every other character, so the range holds exactly the ids with this prefix.
SELECT id FROM runs WHERE id >= :prefix AND id < :prefix || char(0x10FFFF) ORDER BY id LIMIT :limit;

-- name: list_runs_by_status
SELECT created_at, id FROM runs
WHERE status = :status AND (created_at, id) < (:before, :before_id) AND created_at >= :after
ORDER BY created_at DESC, id DESC
LIMIT :limit;

-- name: list_runs_by_workflow
SELECT created_at, id FROM runs
WHERE workflow = :workflow AND status = :status AND (created_at, id) < (:before, :before_id) AND created_at >= :after
ORDER BY created_at DESC, id DESC
LIMIT :limit;

-- name: list_runs_of_unknown_status
-- The gaps between the known statuses, each an empty range of the index as a rule.
SELECT created_at, id FROM runs
WHERE (status < 'cancelled' OR (status > 'cancelled' AND status < 'failed') OR (status > 'failed' AND status < 'paused')
       OR (status > 'paused' AND status < 'pending') OR (status > 'pending' AND status < 'running')
       OR (status > 'running' AND status < 'success') OR status > 'success')
  AND (:workflow IS NULL OR workflow = :workflow) AND (created_at, id) < (:before, :before_id) AND created_at >= :after
ORDER BY created_at DESC, id DESC
LIMIT :limit;

-- name: tasks_of_run
SELECT name, idx, status, executor, attempt, earlier_attempts, reason, cause_name, cause_idx, failure, exit_code,
       dispatched_at, started_at, finished_at, retry_at, output_key, output_size, output,
       instances, item, cache_key
FROM tasks
WHERE run_id = :run
ORDER BY ordinal, idx;

-- name: tasks_changed_since
-- By the index on what changed: a look at a large run costs what is new. The sort is over those rows alone.
SELECT name, idx, status, executor, attempt, earlier_attempts, reason, cause_name, cause_idx, failure, exit_code,
       dispatched_at, started_at, finished_at, retry_at, output_key, output_size, output,
       instances, item, cache_key
FROM tasks INDEXED BY tasks_changed
WHERE run_id = :run AND changed > :since
ORDER BY ordinal, idx;

-- name: page_of_tasks
-- A range of the primary key: a page of a large run costs a page.
SELECT name, idx, status, executor, attempt, earlier_attempts, reason, cause_name, cause_idx, failure, exit_code,
       dispatched_at, started_at, finished_at, retry_at, output_key, output_size, output,
       instances, item, cache_key
FROM tasks
WHERE run_id = :run AND (ordinal, idx) > (:after, :after_idx) AND (:place IS NULL OR ordinal = :place)
  AND (:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses)))
  AND (:with_instances OR idx < 0) AND (NOT :is_retrying OR retry_at IS NOT NULL)
ORDER BY ordinal, idx
LIMIT :limit;

-- name: page_of_changed_tasks
SELECT name, idx, status, executor, attempt, earlier_attempts, reason, cause_name, cause_idx, failure, exit_code,
       dispatched_at, started_at, finished_at, retry_at, output_key, output_size, output,
       instances, item, cache_key
FROM tasks INDEXED BY tasks_changed
WHERE run_id = :run AND changed > :since AND (ordinal, idx) > (:after, :after_idx)
  AND (:place IS NULL OR ordinal = :place)
  AND (:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses)))
  AND (:with_instances OR idx < 0) AND (NOT :is_retrying OR retry_at IS NOT NULL)
ORDER BY ordinal, idx
LIMIT :limit;

-- name: attempts_of_run
-- All of a run, or those of the tasks between two places of the workflow's order.
SELECT run_id, name, idx, number, status, executor, pool, external_name, token_hash, dispatched_at, started_at,
       finished_at, exit_code, failure, closing, closing_since, seq, seen_at, waits_for, group_id, group_index, parallelism
FROM attempts
WHERE run_id = :run AND ordinal BETWEEN :first AND :last AND (:idx IS NULL OR idx = :idx)
ORDER BY ordinal, idx, number;

-- name: page_of_attempts
SELECT run_id, name, idx, number, status, executor, pool, external_name, token_hash, dispatched_at, started_at,
       finished_at, exit_code, failure, closing, closing_since, seq, seen_at, waits_for, group_id, group_index, parallelism
FROM attempts
WHERE run_id = :run AND (ordinal, idx, number) > (:after, :after_idx, :after_number)
  AND ordinal BETWEEN :first AND :last AND (:idx IS NULL OR idx = :idx)
ORDER BY ordinal, idx, number
LIMIT :limit;

-- name: over_budget_at
SELECT raised_at FROM alerts WHERE run_id = :run AND kind = 'budget' ORDER BY id DESC LIMIT 1;

-- name: alerts_of_run
SELECT task, idx, failure FROM alerts WHERE run_id = :run AND kind IN ('task', 'run') ORDER BY id;

-- name: holders
-- Some of the attempts that hold a limit's slots.
SELECT run_id, name, idx, number FROM attempts
WHERE status IN ('dispatched', 'running') AND is_waiting = 0
  AND (:executor IS NULL OR executor = :executor) AND (:pool IS NULL OR pool = :pool)
LIMIT :limit;

-- name: find_cached
-- The newest equal result that is not too old.
SELECT run_id, output_key, output_size, output FROM tasks
WHERE cache_key = :key AND status = 'success' AND finished_at >= :since
ORDER BY finished_at DESC
LIMIT 1;

-- name: count_unfinished
-- A range of the listing's index for each status that is not final.
SELECT status, count(*) FROM runs WHERE status IN ('pending', 'running', 'paused') GROUP BY status;

-- name: changed_runs
-- The runs of one commit share its number and come together: a mark between them would hide some. A limit on the
-- inner range keeps the cost to what is shown.
SELECT id, changed FROM runs
WHERE changed > :mark AND changed <= (
    SELECT max(changed) FROM (SELECT changed FROM runs WHERE changed > :mark ORDER BY changed LIMIT :limit))
ORDER BY changed, id;

-- name: count_tasks
SELECT min(name), idx >= 0, status, count(*) FROM tasks
WHERE run_id = :run
GROUP BY ordinal, idx >= 0, status
ORDER BY ordinal, idx >= 0, status;

-- name: page_of_times
-- One row with a text for each column: rows that SQLite hands over one by one cost several times as much, and the
-- interpreter's lock for each of them. The second to last column has the tasks with earlier attempts.
SELECT group_concat(replace(name, char(10), ' '), char(10)), json_group_array(idx),
       group_concat(replace(status, char(10), ' '), char(10)), json_group_array(attempt),
       json_group_array(unixepoch(dispatched_at) * 1000 + substr(dispatched_at, 21, 3)),
       json_group_array(unixepoch(started_at) * 1000 + substr(started_at, 21, 3)),
       json_group_array(unixepoch(finished_at) * 1000 + substr(finished_at, 21, 3)),
       json_group_array(json_array(ordinal, idx, attempt, status = 'pending')) FILTER (WHERE attempt > (status <> 'pending')),
       max(ordinal)
FROM (
    SELECT name, idx, status, attempt, dispatched_at, started_at, finished_at, ordinal FROM tasks
    WHERE run_id = :run AND (ordinal, idx) > (:after, :after_idx) AND (:with_instances OR idx < 0)
    ORDER BY ordinal, idx
    LIMIT :limit);

-- name: page_of_changed_times
SELECT group_concat(replace(name, char(10), ' '), char(10)), json_group_array(idx),
       group_concat(replace(status, char(10), ' '), char(10)), json_group_array(attempt),
       json_group_array(unixepoch(dispatched_at) * 1000 + substr(dispatched_at, 21, 3)),
       json_group_array(unixepoch(started_at) * 1000 + substr(started_at, 21, 3)),
       json_group_array(unixepoch(finished_at) * 1000 + substr(finished_at, 21, 3)),
       json_group_array(json_array(ordinal, idx, attempt, status = 'pending')) FILTER (WHERE attempt > (status <> 'pending')),
       max(ordinal)
FROM (
    SELECT name, idx, status, attempt, dispatched_at, started_at, finished_at, ordinal FROM tasks INDEXED BY tasks_changed
    WHERE run_id = :run AND changed > :since AND (ordinal, idx) > (:after, :after_idx) AND (:with_instances OR idx < 0)
    ORDER BY ordinal, idx
    LIMIT :limit);

-- name: earlier_times
-- Looked up by the tasks' keys: a page without retries costs nothing.
SELECT name, idx, status, number, unixepoch(dispatched_at) * 1000 + substr(dispatched_at, 21, 3),
       unixepoch(started_at) * 1000 + substr(started_at, 21, 3), unixepoch(finished_at) * 1000 + substr(finished_at, 21, 3)
FROM json_each(:tasks) AS wanted
    JOIN attempts ON run_id = :run AND ordinal = wanted.value ->> 0 AND idx = wanted.value ->> 1
        AND number >= wanted.value ->> 2 AND number < wanted.value ->> 3
ORDER BY ordinal, idx, number;
