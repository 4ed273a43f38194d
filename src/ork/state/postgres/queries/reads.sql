-- name: neighbours
SELECT wanted.id,
       (SELECT max(r.id) FROM ork.runs AS r WHERE r.id < wanted.id),
       (SELECT min(r.id) FROM ork.runs AS r WHERE r.id > wanted.id)
FROM unnest($1::text[]) AS wanted (id);

-- name: find_runs
-- U+10FFFF sorts after every other character, so the range holds exactly the ids with this prefix.
SELECT id FROM ork.runs WHERE id >= $1 AND id < $1 || U&'\+10FFFF' ORDER BY id LIMIT $2;

-- name: list_runs_by_status
-- One range of the index for each status, merged: any filter costs a page, however long the history is.
SELECT found.* FROM unnest($1::text[]) AS wanted (status) CROSS JOIN LATERAL (
    SELECT r.id, r.workflow, r.version, r.status, r.trigger, '{}' AS params, r.created_at, r.scheduled_for, r.started_at,
           r.finished_at, r.error, r.round, r.priority, r.cancel_requested_at, r.note, r.fresh, r.parent,
           r.epoch, r.changed
    FROM ork.runs AS r
    WHERE r.status = wanted.status AND (r.created_at, r.id) < (coalesce($2::timestamptz, 'infinity'), $3)
      AND r.created_at >= coalesce($5::timestamptz, '-infinity')
    ORDER BY r.created_at DESC, r.id DESC
    LIMIT $4) AS found
ORDER BY found.created_at DESC, found.id DESC
LIMIT $4;

-- name: list_runs_by_workflow
SELECT found.* FROM unnest($1::text[]) AS wanted (status) CROSS JOIN LATERAL (
    SELECT r.id, r.workflow, r.version, r.status, r.trigger, '{}' AS params, r.created_at, r.scheduled_for, r.started_at,
           r.finished_at, r.error, r.round, r.priority, r.cancel_requested_at, r.note, r.fresh, r.parent,
           r.epoch, r.changed
    FROM ork.runs AS r
    WHERE r.workflow = $6 AND r.status = wanted.status
      AND (r.created_at, r.id) < (coalesce($2::timestamptz, 'infinity'), $3)
      AND r.created_at >= coalesce($5::timestamptz, '-infinity')
    ORDER BY r.created_at DESC, r.id DESC
    LIMIT $4) AS found
ORDER BY found.created_at DESC, found.id DESC
LIMIT $4;

-- name: list_runs_of_unknown_status
-- The gaps between the known statuses, each an empty range of the index as a rule.
SELECT found.* FROM (
    SELECT lag(known) OVER (ORDER BY known COLLATE "C") AS low, known AS high FROM unnest($5::text[]) AS known
    UNION ALL SELECT max(known COLLATE "C"), NULL FROM unnest($5::text[]) AS known) AS gap
CROSS JOIN LATERAL (
    SELECT r.id, r.workflow, r.version, r.status, r.trigger, '{}' AS params, r.created_at, r.scheduled_for, r.started_at,
           r.finished_at, r.error, r.round, r.priority, r.cancel_requested_at, r.note, r.fresh, r.parent,
           r.epoch, r.changed
    FROM ork.runs AS r
    WHERE r.status > coalesce(gap.low, '') AND (gap.high IS NULL OR r.status < gap.high)
      AND ($4::text IS NULL OR r.workflow = $4)
      AND (r.created_at, r.id) < (coalesce($1::timestamptz, 'infinity'), $2)
      AND r.created_at >= coalesce($6::timestamptz, '-infinity')
    LIMIT $3) AS found
ORDER BY found.created_at DESC, found.id DESC
LIMIT $3;

-- name: last_runs
-- One look at the index for each workflow and status: it costs the same however many runs they have had.
SELECT newest.* FROM unnest($1::text[]) AS wanted (workflow) CROSS JOIN LATERAL (
    SELECT found.* FROM unnest($2::text[]) AS any_of (status) CROSS JOIN LATERAL (
        SELECT r.id, r.workflow, r.version, r.status, r.trigger, '{}' AS params, r.created_at, r.scheduled_for, r.started_at,
               r.finished_at, r.error, r.round, r.priority, r.cancel_requested_at, r.note, r.fresh, r.parent,
               r.epoch, r.changed
        FROM ork.runs AS r
        WHERE r.workflow = wanted.workflow AND r.status = any_of.status
        ORDER BY r.created_at DESC, r.id DESC
        LIMIT 1) AS found
    ORDER BY found.created_at DESC, found.id DESC
    LIMIT 1) AS newest;

-- name: param_values
-- `json`, not `jsonb`: it copies the value's text as it is, whatever characters are escaped in it.
SELECT found.id, found.value FROM (
    SELECT r.id, (r.params::json -> $2)::text AS value
    FROM unnest($1::text[]) AS wanted (id) JOIN ork.runs AS r ON r.id = wanted.id) AS found
WHERE found.value IS NOT NULL;

-- name: tasks_of_run
-- A range of the primary key: a page of a large run costs a page.
SELECT name, idx, status, executor, attempt, earlier_attempts, reason, cause_name, cause_idx, failure, exit_code,
       dispatched_at, started_at, finished_at, retry_at, output_key, output_size, output,
       instances, item, cache_key
FROM ork.tasks
WHERE run_id = $1 AND (ordinal, idx) > ($2::integer, $3::integer)
  AND ($4::integer IS NULL OR ordinal = $4) AND ($5::text[] IS NULL OR status = ANY ($5))
  AND ($7::boolean OR idx < 0) AND (NOT $8::boolean OR retry_at IS NOT NULL)
ORDER BY ordinal, idx
LIMIT $6;

-- name: tasks_changed_since
-- From the keys of those that were written: a look at a large run costs what is new. The sort is over those rows alone.
SELECT name, idx, status, executor, attempt, earlier_attempts, reason, cause_name, cause_idx, failure, exit_code,
       dispatched_at, started_at, finished_at, retry_at, output_key, output_size, output,
       instances, item, cache_key
FROM (SELECT DISTINCT n.ordinal, n.idx
      FROM ork.task_changes AS c CROSS JOIN LATERAL unnest(c.ordinals, c.idxs) AS n (ordinal, idx)
      WHERE c.run_id = $1 AND c.changed > $9) AS written
    JOIN ork.tasks USING (ordinal, idx)
WHERE run_id = $1 AND (ordinal, idx) > ($2::integer, $3::integer)
  AND ($4::integer IS NULL OR ordinal = $4) AND ($5::text[] IS NULL OR status = ANY ($5))
  AND ($7::boolean OR idx < 0) AND (NOT $8::boolean OR retry_at IS NOT NULL)
ORDER BY ordinal, idx
LIMIT $6;

-- name: attempts_of_run
-- All of a run, or those of the tasks between two places of the workflow's order.
SELECT run_id, name, idx, number, status, executor, pool, external_name, token_hash, dispatched_at, started_at,
       finished_at, exit_code, failure, closing, closing_since, seq, seen_at, waits_for, group_id, group_index, parallelism
FROM ork.attempts
WHERE run_id = $1 AND ordinal BETWEEN $2 AND $3 AND ($4::integer IS NULL OR idx = $4)
ORDER BY ordinal, idx, number;

-- name: page_of_attempts
SELECT run_id, name, idx, number, status, executor, pool, external_name, token_hash, dispatched_at, started_at,
       finished_at, exit_code, failure, closing, closing_since, seq, seen_at, waits_for, group_id, group_index, parallelism
FROM ork.attempts
WHERE run_id = $1 AND (ordinal, idx, number) > ($2::integer, $3::integer, $4::integer)
  AND ordinal BETWEEN $5 AND $6 AND ($7::integer IS NULL OR idx = $7)
ORDER BY ordinal, idx, number
LIMIT $8;

-- name: over_budget_at
SELECT raised_at FROM ork.alerts WHERE run_id = $1 AND run_id IS NOT NULL AND kind = 'budget' ORDER BY id DESC LIMIT 1;

-- name: alerts_of_run
SELECT task, idx, failure FROM ork.alerts WHERE run_id = $1 AND run_id IS NOT NULL AND kind IN ('task', 'run') ORDER BY id;

-- name: list_limits
SELECT name, slots FROM ork.limits ORDER BY name;

-- name: holders
-- Some of the attempts that hold a limit's slots.
SELECT run_id, name, idx, number FROM ork.attempts
WHERE active AND NOT is_waiting
  AND ($1::text IS NULL OR executor = $1) AND ($2::text IS NULL OR pool = $2)
LIMIT $3;

-- name: find_cached
-- The newest equal result that is not too old.
SELECT run_id, output_key, output_size, output FROM ork.tasks
WHERE cache_key = $1 AND cached_at IS NOT NULL AND cached_at >= $2
ORDER BY cached_at DESC
LIMIT 1;

-- name: count_unfinished
SELECT status, count(*) FROM ork.runs WHERE status IN ('pending', 'running', 'paused') GROUP BY status;

-- name: changed_runs
-- The runs of one commit share its number and come together: a mark between them would hide some.
SELECT id, changed FROM ork.runs
WHERE changed > $1 AND changed <= (
    SELECT max(changed) FROM (
        SELECT changed FROM ork.runs WHERE changed > $1 AND changed <= $2 ORDER BY changed LIMIT $3) AS page)
ORDER BY changed, id;

-- name: has_later_changes
SELECT EXISTS (SELECT 1 FROM ork.runs WHERE changed > $1);

-- name: count_tasks
SELECT min(name), idx >= 0, status, count(*) FROM ork.tasks
WHERE run_id = $1
GROUP BY ordinal, idx >= 0, status
ORDER BY ordinal, idx >= 0, status COLLATE "C";

-- name: page_of_times
-- Times as milliseconds: making a datetime of each costs more than all else.
SELECT name, idx, status, attempt,
       CASE WHEN isfinite(dispatched_at) THEN floor(extract(epoch FROM dispatched_at) * 1000)::bigint END,
       CASE WHEN isfinite(started_at) THEN floor(extract(epoch FROM started_at) * 1000)::bigint END,
       CASE WHEN isfinite(finished_at) THEN floor(extract(epoch FROM finished_at) * 1000)::bigint END,
       ordinal, status = 'pending'
FROM ork.tasks
WHERE run_id = $1 AND (ordinal, idx) > ($2::integer, $3::integer) AND ($4::boolean OR idx < 0)
ORDER BY ordinal, idx
LIMIT $5;

-- name: page_of_changed_times
SELECT name, idx, status, attempt,
       CASE WHEN isfinite(dispatched_at) THEN floor(extract(epoch FROM dispatched_at) * 1000)::bigint END,
       CASE WHEN isfinite(started_at) THEN floor(extract(epoch FROM started_at) * 1000)::bigint END,
       CASE WHEN isfinite(finished_at) THEN floor(extract(epoch FROM finished_at) * 1000)::bigint END,
       ordinal, status = 'pending'
FROM (SELECT DISTINCT n.ordinal, n.idx
      FROM ork.task_changes AS c CROSS JOIN LATERAL unnest(c.ordinals, c.idxs) AS n (ordinal, idx)
      WHERE c.run_id = $1 AND c.changed > $6) AS written
    JOIN ork.tasks USING (ordinal, idx)
WHERE run_id = $1 AND (ordinal, idx) > ($2::integer, $3::integer) AND ($4::boolean OR idx < 0)
ORDER BY ordinal, idx
LIMIT $5;

-- name: earlier_times
-- Looked up by the tasks' keys: a page without retries costs nothing.
SELECT a.name, a.idx, a.status, a.number,
       CASE WHEN isfinite(a.dispatched_at) THEN floor(extract(epoch FROM a.dispatched_at) * 1000)::bigint END,
       CASE WHEN isfinite(a.started_at) THEN floor(extract(epoch FROM a.started_at) * 1000)::bigint END,
       CASE WHEN isfinite(a.finished_at) THEN floor(extract(epoch FROM a.finished_at) * 1000)::bigint END
FROM unnest($2::integer[], $3::integer[], $4::integer[], $5::integer[]) AS wanted (ordinal, idx, first, before)
    JOIN ork.attempts AS a ON a.run_id = $1 AND a.ordinal = wanted.ordinal AND a.idx = wanted.idx
        AND a.number >= wanted.first AND a.number < wanted.before
ORDER BY a.ordinal, a.idx, a.number;
