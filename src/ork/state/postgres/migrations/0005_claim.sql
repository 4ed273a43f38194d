-- The verbs of a scheduler, each as one request: what they did in a dozen statements, with the same locks in the same order.
-- Every statement of a function sees what was committed before that statement began, as in a transaction.

-- Rows as they travel. A driver has to ask what such types are before it can send or read an array of them, once for each
-- connection: so they are used where there are many rows, and by those who stay.
CREATE TYPE ork.task_row AS (
    run_id text, ordinal integer, idx integer, name text, status text, executor text, attempt integer,
    earlier_attempts integer, reason text, cause_name text, cause_idx integer, failure text, exit_code bigint,
    dispatched_at timestamptz, started_at timestamptz, finished_at timestamptz, retry_at timestamptz, output_key text,
    output_size bigint, output text, instances integer, item text, cache_key text, changed bigint
);
CREATE TYPE ork.attempt_row AS (
    run_id text, ordinal integer, idx integer, number integer, name text, status text, executor text, pool text,
    external_name text, token_hash text, dispatched_at timestamptz, started_at timestamptz, finished_at timestamptz,
    exit_code bigint, failure text, closing text, closing_since timestamptz, seq bigint, seen_at timestamptz,
    waits_for text, is_waiting boolean
);

-- What may change about a run, and one of which nothing changes but its tasks. only_wishes: not even those, unless one of
-- its wishes is admitted.
CREATE TYPE ork.run_change AS (
    rest boolean, id text, status text, started_at timestamptz, finished_at timestamptz, error text, round integer,
    priority integer, cancel_requested_at timestamptz, note text
);
CREATE TYPE ork.run_touch AS (id text, rest boolean, only_wishes boolean);
CREATE TYPE ork.alert_row AS (kind text, run_id text, task text, idx integer, failure text);
CREATE TYPE ork.start_rate AS (name text, count integer, seconds double precision);

-- The number under which a transaction writes. Until it ends, an advisory lock shows the last number handed out before
-- its own: that all numbers up to there are settled is all that can be said while it is under way.
CREATE FUNCTION ork.next_change() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(5206635::bigint << 40 | last_value) FROM ork.changes;
    RETURN nextval('ork.changes');
END $$;

-- The last thing a transaction does: those that tell wait for each other.
CREATE FUNCTION ork.tell_others(_slot integer, _handle text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE ork.pulse SET number = number + 1 WHERE slot = _slot::smallint;
    PERFORM pg_notify('ork', _handle);
END $$;

-- New runs, told of to others, if all of them are new (by id, key and slot) and of versions that are known; fewer ids than
-- were asked for mean that nothing was written. The order is one for all, so that no two transactions wait for each
-- other's keys.
CREATE FUNCTION ork.create_runs(
    _ids text[], _workflows text[], _versions text[], _triggers text[], _params text[], _scheduled_for timestamptz[],
    _priorities integer[], _keys text[], _fresh boolean[], _parents text[], _now timestamptz, _slot integer, _handle text
) RETURNS SETOF text LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    _changed bigint := ork.next_change();
    _added integer;
BEGIN
    RETURN QUERY
        INSERT INTO ork.runs AS r (id, workflow, version, status, trigger, params, created_at, scheduled_for, round,
                                   priority, key, fresh, parent, epoch, attention, changed)
        SELECT n.id, n.workflow, v.id, 'pending', n.trigger, n.params, _now, n.scheduled_for, 1, n.priority, n.key,
               n.fresh, n.parent, 0, true, _changed
        FROM unnest(_ids, _workflows, _versions, _triggers, _params, _scheduled_for, _priorities, _keys, _fresh, _parents)
            WITH ORDINALITY
            AS n (id, workflow, version, trigger, params, scheduled_for, priority, key, fresh, parent, place)
        JOIN ork.versions AS v ON v.id = n.version
        ORDER BY n.workflow COLLATE "C", n.key COLLATE "C", n.scheduled_for, n.place
        ON CONFLICT DO NOTHING
        RETURNING r.id;
    GET DIAGNOSTICS _added = ROW_COUNT;
    IF _added < cardinality(_ids) THEN
        RAISE SQLSTATE 'ORK01';
    END IF;
    PERFORM ork.tell_others(_slot, _handle);
EXCEPTION WHEN SQLSTATE 'ORK01' THEN
    RETURN;
END $$;

-- Up to so many runs become this scheduler's; and what people asked of all it owns. A row is a run, or a command for the
-- run of that id.
CREATE FUNCTION ork.claim(
    _scheduler text, _room integer, _moment timestamptz, _silent_seconds double precision
) RETURNS TABLE (
    id text, workflow text, version text, status text, trigger text, params text, created_at timestamptz,
    scheduled_for timestamptz, started_at timestamptz, finished_at timestamptz, error text, round integer,
    priority integer, cancel_requested_at timestamptz, note text, fresh boolean, parent text, epoch bigint, changed bigint,
    command bigint, kind text, asked_by text, task text, everything boolean, comment text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    _has_lease boolean;
    _has_free boolean;
    _has_lapsed boolean;
    _lapsed text[];
    _taken text[];
BEGIN
    -- Read before anything is locked, so that a look that finds nothing disturbs nobody.
    SELECT EXISTS (SELECT 1 FROM ork.schedulers WHERE id = _scheduler AND lease_until > coalesce(_moment, clock_timestamp())),
           EXISTS (SELECT 1 FROM ork.runs WHERE attention AND owner IS NULL),
           EXISTS (SELECT 1 FROM ork.schedulers WHERE lease_until <= coalesce(_moment, clock_timestamp()))
    INTO _has_lease, _has_free, _has_lapsed;
    IF NOT _has_lease THEN
        RETURN;
    END IF;
    IF _room > 0 AND (_has_free OR _has_lapsed) THEN
        IF _has_lapsed THEN
            PERFORM ork.end_silent_sessions(_silent_seconds);
        END IF;
        -- Nothing is done on the strength of a claim before the first commit, and that makes both durable.
        PERFORM set_config('synchronous_commit', 'off', true);
        -- Our own row and those whose lease has run out, in one order for all: ours is locked so that nobody takes us for
        -- dead while we claim, theirs so that they cannot renew while we take over.
        SELECT bool_or(s.id = _scheduler AND s.holds), array_agg(s.id) FILTER (WHERE NOT s.holds)
        INTO _has_lease, _lapsed
        FROM (SELECT id, lease_until > coalesce(_moment, clock_timestamp()) AS holds FROM ork.schedulers
              WHERE id = _scheduler OR lease_until <= coalesce(_moment, clock_timestamp())
              ORDER BY id FOR UPDATE) AS s;
        IF NOT coalesce(_has_lease, false) THEN
            RETURN;
        END IF;
        IF _lapsed IS NOT NULL THEN
            PERFORM ork.forget_schedulers(_lapsed);
        END IF;
        _taken := ork.pick_runs(_room);
        RETURN QUERY
            WITH taken AS (
                UPDATE ork.runs AS r SET owner = _scheduler, epoch = r.epoch + 1 WHERE r.id = ANY (_taken) RETURNING r.*)
            SELECT t.id, t.workflow, t.version, t.status, t.trigger, t.params, t.created_at, t.scheduled_for, t.started_at,
                   t.finished_at, t.error, t.round, t.priority, t.cancel_requested_at, t.note, t.fresh, t.parent, t.epoch,
                   t.changed, NULL::bigint, NULL, NULL, NULL, NULL::boolean, NULL
            FROM taken AS t
            ORDER BY array_position(_taken, t.id);
    END IF;
    -- From the waiting commands (few) to their runs.
    FOR command, id, kind, asked_by, task, everything, comment IN
        SELECT c.id, c.run_id, c.kind, c.asked_by, c.task, c.everything, c.comment
        FROM ork.commands AS c JOIN ork.runs AS r ON r.id = c.run_id
        WHERE c.done_at IS NULL AND r.owner = _scheduler
        ORDER BY c.id
    LOOP
        RETURN NEXT;
    END LOOP;
END $$;

-- Of our own sessions those that have been silent for so many seconds in the middle of a request, with a transaction
-- open: their process is frozen, no limit of Postgres holds there, and what they locked would stay locked.
CREATE FUNCTION ork.end_silent_sessions(_seconds double precision) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND application_name = 'ork store'
      AND state = 'active' AND wait_event = 'ClientRead' AND pid <> pg_backend_pid()
      AND query_start < clock_timestamp() - make_interval(secs => _seconds);
END $$;

-- No run may name an owner that has no row: that is how a lapsed owner is told from a living one. Rows are locked in the
-- order of their ids, here as everywhere: so no two transactions wait for each other.
CREATE FUNCTION ork.forget_schedulers(_ids text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM ork.schedulers WHERE id = ANY (_ids);
    WITH owned AS (
        SELECT id FROM ork.runs WHERE owner = ANY (_ids) AND owner IS NOT NULL ORDER BY id FOR UPDATE)
    UPDATE ork.runs AS r SET owner = NULL FROM owned WHERE r.id = owned.id;
END $$;

-- Runs that can be claimed, locked. Looks again while some were passed over because their workflow filled up: each time one
-- workflow fewer.
CREATE FUNCTION ork.pick_runs(_room integer) RETURNS text[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    _limited text[];  -- workflows that limit their runs and have some waiting; who claims for the same ones waits here
    _free bigint[];   -- how many more runs each may have active
    _run record;
    _at integer;
    _taken text[] := '{}';
    _passed_over boolean;
BEGIN
    _limited := ARRAY (
        SELECT w.name FROM ork.workflows AS w
        WHERE w.max_active_runs IS NOT NULL AND EXISTS (
            SELECT 1 FROM ork.runs AS r
            WHERE r.attention AND r.owner IS NULL AND r.status = 'pending' AND r.workflow = w.name)
        ORDER BY w.name FOR NO KEY UPDATE OF w);
    IF cardinality(_limited) > 0 THEN
        SELECT array_agg(w.name), array_agg(w.max_active_runs - (
            SELECT count(*) FROM ork.runs AS r
            WHERE r.workflow = w.name
              AND (r.status IN ('running', 'paused') OR (r.status = 'pending' AND r.owner IS NOT NULL))))
        INTO _limited, _free
        FROM ork.workflows AS w WHERE w.name = ANY (_limited) AND w.max_active_runs IS NOT NULL;
    END IF;
    LOOP
        _passed_over := false;
        -- A queued run (pending, not to be cancelled) of a limited workflow is taken only if that has room and is locked
        -- by us; otherwise it is passed over, not waited behind. So is a run that somebody else is about to claim.
        FOR _run IN
            SELECT r.id, r.workflow, r.status = 'pending' AS is_pending, r.cancel_requested_at IS NOT NULL AS is_cancelled
            FROM ork.runs AS r
            WHERE r.attention AND r.owner IS NULL AND NOT r.id = ANY (_taken)
              AND NOT (r.status = 'pending' AND r.cancel_requested_at IS NULL AND EXISTS (
                  SELECT 1 FROM ork.workflows AS w
                  WHERE w.name = r.workflow AND w.max_active_runs IS NOT NULL AND NOT EXISTS (
                      SELECT 1 FROM unnest(_limited, _free) AS f (name, room) WHERE f.name = w.name AND f.room > 0)))
            ORDER BY r.priority DESC, r.created_at, r.id
            LIMIT _room - cardinality(_taken)
            FOR UPDATE OF r SKIP LOCKED
        LOOP
            _at := CASE WHEN _run.is_pending THEN array_position(_limited, _run.workflow) END;
            IF _free[_at] <= 0 AND NOT _run.is_cancelled THEN
                _passed_over := true;
                CONTINUE;
            END IF;
            IF _at IS NOT NULL THEN
                _free[_at] := _free[_at] - 1;
            END IF;
            _taken := _taken || _run.id;
        END LOOP;
        EXIT WHEN NOT _passed_over OR cardinality(_taken) >= _room;
    END LOOP;
    RETURN _taken;
END $$;
