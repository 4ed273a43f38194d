SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

CREATE SCHEMA ork;

CREATE TYPE ork.alert_row AS (
	kind text,
	run_id text,
	task text,
	idx integer,
	failure text
);

CREATE TYPE ork.attempt_row AS (
	run_id text,
	ordinal integer,
	idx integer,
	number integer,
	name text,
	status text,
	executor text,
	pool text,
	external_name text,
	token_hash text,
	dispatched_at timestamp with time zone,
	started_at timestamp with time zone,
	finished_at timestamp with time zone,
	exit_code bigint,
	failure text,
	closing text,
	closing_since timestamp with time zone,
	seq bigint,
	seen_at timestamp with time zone,
	waits_for text,
	is_waiting boolean
);

CREATE TYPE ork.moved AS (
	run_id text,
	ordinal integer,
	idx integer,
	number integer,
	status text,
	started_at double precision,
	finished_at double precision,
	exit_code bigint,
	output text,
	pool text,
	seq bigint,
	seen_at double precision
);

CREATE TYPE ork.run_change AS (
	rest boolean,
	id text,
	status text,
	started_at timestamp with time zone,
	finished_at timestamp with time zone,
	error text,
	round integer,
	priority integer,
	cancel_requested_at timestamp with time zone,
	note text
);

CREATE TYPE ork.run_touch AS (
	id text,
	rest boolean,
	only_wishes boolean
);

CREATE TYPE ork.start_rate AS (
	name text,
	count integer,
	seconds double precision
);

CREATE TYPE ork.task_row AS (
	run_id text,
	ordinal integer,
	idx integer,
	name text,
	status text,
	executor text,
	attempt integer,
	earlier_attempts integer,
	reason text,
	cause_name text,
	cause_idx integer,
	failure text,
	exit_code bigint,
	dispatched_at timestamp with time zone,
	started_at timestamp with time zone,
	finished_at timestamp with time zone,
	retry_at timestamp with time zone,
	output_key text,
	output_size bigint,
	output text,
	instances integer,
	item text,
	cache_key text,
	changed bigint
);

CREATE FUNCTION ork.add_recoveries(_succeeded text[], _now timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO ork.alerts (kind, workflow, run_id, raised_at, due_at, tries, sent)
    SELECT 'recovery', r.workflow, r.id, _now, _now, 0, '{}'
    FROM unnest(_succeeded) WITH ORDINALITY AS n (id, place) JOIN ork.runs AS r ON r.id = n.id
    WHERE EXISTS (SELECT 1 FROM ork.alerts AS a WHERE a.run_id = r.id AND a.run_id IS NOT NULL AND a.kind = 'run')
       OR 'failed' = (
        SELECT earlier.status FROM unnest(ARRAY ['failed', 'success']) AS ending CROSS JOIN LATERAL (
            SELECT b.status, b.created_at, b.id FROM ork.runs AS b
            WHERE b.workflow = r.workflow AND b.status = ending AND (b.created_at, b.id) < (r.created_at, r.id)
            ORDER BY b.created_at DESC, b.id DESC LIMIT 1) AS earlier
        ORDER BY earlier.created_at DESC, earlier.id DESC LIMIT 1)
    ORDER BY n.place;
END $$;

CREATE FUNCTION ork.add_tasks(_tasks ork.task_row[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO ork.tasks (
        run_id, ordinal, idx, name, status, executor, attempt, earlier_attempts, reason, cause_name, cause_idx, failure,
        exit_code, dispatched_at, started_at, finished_at, retry_at, output_key, output_size, output, instances, item,
        cache_key)
    SELECT n.run_id, n.ordinal, n.idx, n.name, n.status, n.executor, n.attempt, n.earlier_attempts, n.reason, n.cause_name,
           n.cause_idx, n.failure, n.exit_code, n.dispatched_at, n.started_at, n.finished_at, n.retry_at, n.output_key,
           n.output_size, n.output, n.instances, n.item, n.cache_key
    FROM unnest(_tasks) AS n;
END $$;

CREATE FUNCTION ork.admit(_attempts ork.attempt_row[], _limits text[], _rates ork.start_rate[], _moment timestamp with time zone, OUT admitted integer[], OUT exhausted text[], OUT again_in double precision) RETURNS record
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    _names text[];
    _left bigint[];
    _buckets text[];
    _counts double precision[];
    _seconds double precision[];
    _tokens double precision[];
    _drawn boolean[];
    _attempt ork.attempt_row;
    _place integer := 0;
    _name text;
    _at integer;
    _fits boolean;
BEGIN
    SELECT array_agg(l.name), array_agg(l.slots) INTO _names, _left
    FROM (SELECT name, slots FROM ork.limits WHERE name = ANY (_limits) ORDER BY name FOR UPDATE) AS l;
    IF _names IS NOT NULL THEN
        -- By a statement that begins when the locks are held: it sees whatever was admitted before. A walk over the index
        -- of active attempts: it costs what is active now.
        WITH active AS MATERIALIZED (
            SELECT executor, pool, count(*) AS number FROM ork.attempts
            WHERE active AND NOT is_waiting
            GROUP BY executor, pool)
        SELECT array_agg(l.slots - (
            SELECT coalesce(sum(a.number), 0) FROM active AS a
            WHERE l.name IN ('*', 'executor:' || a.executor, 'pool:' || a.pool))::bigint ORDER BY l.place)
        INTO _left
        FROM unnest(_names, _left) WITH ORDINALITY AS l (name, slots, place);
    END IF;
    IF _rates IS NOT NULL THEN
        SELECT array_agg(b.name), array_agg(b.count), array_agg(b.seconds), array_agg(false)
        INTO _buckets, _counts, _seconds, _drawn
        FROM (SELECT DISTINCT ON (name COLLATE "C") name, count, seconds
              FROM (SELECT name, count, seconds FROM unnest(_rates) WHERE name IS NOT NULL
                    UNION ALL SELECT 'rate:' || name, count, seconds FROM ork.rates WHERE name = ANY (_limits)) AS rates
              ORDER BY name COLLATE "C") AS b;
    END IF;
    IF _buckets IS NOT NULL THEN
        -- A bucket that was never used is full. Made before it is locked, so that two cannot both find it missing. It
        -- fills evenly, up to one burst.
        INSERT INTO ork.buckets (name, tokens, at)
        SELECT name, tokens, coalesce(_moment, clock_timestamp()) FROM unnest(_buckets, _counts) AS n (name, tokens)
        ON CONFLICT (name) DO NOTHING;
        PERFORM 1 FROM ork.buckets WHERE name = ANY (_buckets) ORDER BY name FOR UPDATE;
        SELECT array_agg(least(n.count, b.tokens + n.count / n.seconds * greatest(
            0, extract(epoch FROM coalesce(_moment, clock_timestamp()) - b.at)::double precision)) ORDER BY n.place)
        INTO _tokens
        FROM unnest(_buckets, _counts, _seconds) WITH ORDINALITY AS n (name, count, seconds, place)
        JOIN ork.buckets AS b ON b.name = n.name;
    END IF;
    IF _names IS NULL AND _buckets IS NULL THEN
        admitted := ARRAY (SELECT generate_series(1, cardinality(_attempts)));
        RETURN;
    END IF;
    FOREACH _attempt IN ARRAY _attempts LOOP
        _place := _place + 1;
        _fits := true;
        FOREACH _name IN ARRAY ARRAY ['*', 'executor:' || _attempt.executor, 'pool:' || _attempt.pool] LOOP
            IF _left[array_position(_names, _name)] <= 0 THEN
                _fits := false;
            END IF;
        END LOOP;
        FOREACH _name IN ARRAY ARRAY [(_rates[_place]).name, 'rate:pool:' || _attempt.pool] LOOP
            _at := array_position(_buckets, _name);
            IF _tokens[_at] < 1 THEN
                _fits := false;
                exhausted := exhausted || _name;
                again_in := least(again_in, (1 - _tokens[_at]) * _seconds[_at] / _counts[_at]);
            END IF;
        END LOOP;
        CONTINUE WHEN NOT _fits;
        admitted := admitted || _place;
        FOREACH _name IN ARRAY ARRAY ['*', 'executor:' || _attempt.executor, 'pool:' || _attempt.pool] LOOP
            _at := array_position(_names, _name);
            IF _at IS NOT NULL THEN
                _left[_at] := _left[_at] - 1;
            END IF;
        END LOOP;
        FOREACH _name IN ARRAY ARRAY [(_rates[_place]).name, 'rate:pool:' || _attempt.pool] LOOP
            _at := array_position(_buckets, _name);
            IF _at IS NOT NULL THEN
                _tokens[_at] := _tokens[_at] - 1;
                _drawn[_at] := true;
            END IF;
        END LOOP;
    END LOOP;
    exhausted := exhausted || ARRAY (SELECT name FROM unnest(_names, _left) AS l (name, slots) WHERE slots <= 0);
    IF true = ANY (_drawn) THEN
        UPDATE ork.buckets AS b SET tokens = n.tokens, at = coalesce(_moment, clock_timestamp())
        FROM unnest(_buckets, _tokens, _drawn) AS n (name, tokens, drawn)
        WHERE b.name = n.name AND n.drawn;
    END IF;
END $$;

CREATE FUNCTION ork.claim(_scheduler text, _room integer, _moment timestamp with time zone, _silent_seconds double precision) RETURNS TABLE(id text, workflow text, version text, status text, trigger text, params text, created_at timestamp with time zone, scheduled_for timestamp with time zone, started_at timestamp with time zone, finished_at timestamp with time zone, error text, round integer, priority integer, cancel_requested_at timestamp with time zone, note text, fresh boolean, parent text, epoch bigint, changed bigint, command bigint, kind text, asked_by text, task text, everything boolean, comment text)
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION ork.commit_step(_scheduler text, _ids text[], _epochs bigint[], _unaware text[], _runs ork.run_change[], _touched ork.run_touch[], _tasks ork.task_row[], _attempts ork.attempt_row[], _added ork.task_row[], _moved ork.moved[], _commands bigint[], _command_runs text[], _wished_tasks ork.task_row[], _wished_attempts ork.attempt_row[], _limits text[], _rates ork.start_rate[], _alerts ork.alert_row[], _succeeded text[], _now timestamp with time zone, _moment timestamp with time zone, _slot integer, _handle text, OUT fenced text[], OUT overruled text[], OUT admitted integer[], OUT exhausted text[], OUT again_in double precision, OUT told boolean) RETURNS record
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    _changed bigint;
    _launched text[];
BEGIN
    told := false;
    -- The rows are locked before anything is decided, in the order of their ids.
    WITH locked AS MATERIALIZED (
        SELECT id, owner, epoch FROM ork.runs WHERE id = ANY (_ids) ORDER BY id FOR UPDATE)
    SELECT array_agg(n.id) INTO fenced
    FROM unnest(_ids, _epochs) AS n (id, epoch) LEFT JOIN locked AS l ON l.id = n.id
    WHERE l.owner IS DISTINCT FROM _scheduler OR l.epoch IS DISTINCT FROM n.epoch;
    IF _unaware IS NOT NULL THEN
        -- A statement of its own: one that had to wait for the lock would not see a command that came meanwhile.
        SELECT array_agg(DISTINCT run_id) INTO overruled FROM ork.commands
        WHERE run_id = ANY (_unaware) AND kind = 'cancel' AND done_at IS NULL AND NOT run_id = ANY (coalesce(fenced, '{}'));
    END IF;
    IF fenced IS NOT NULL OR overruled IS NOT NULL THEN
        RETURN;
    END IF;
    -- Asked for when every row to be written is locked: so the numbers of one run grow in the order of its commits.
    _changed := ork.next_change();
    -- All but the launches first: what ends here makes room for them.
    IF _commands IS NOT NULL THEN
        UPDATE ork.commands AS c SET done_at = _now
        FROM unnest(_commands, _command_runs) AS n (id, run_id) WHERE c.id = n.id AND c.run_id = n.run_id;
    END IF;
    IF _tasks IS NOT NULL THEN
        PERFORM ork.write_tasks(_tasks, _changed);
    END IF;
    IF _attempts IS NOT NULL THEN
        PERFORM ork.write_attempts(_attempts);
    END IF;
    IF _added IS NOT NULL THEN
        PERFORM ork.add_tasks(_added);
    END IF;
    IF _moved IS NOT NULL THEN
        PERFORM ork.move(_moved);
    END IF;
    IF _wished_attempts IS NOT NULL THEN
        SELECT * INTO admitted, exhausted, again_in FROM ork.admit(_wished_attempts, _limits, _rates, _moment);
        IF cardinality(admitted) < cardinality(_wished_attempts) THEN
            IF _wished_tasks IS NOT NULL THEN
                _wished_tasks := ARRAY (SELECT _wished_tasks[place] FROM unnest(admitted) AS place);
            END IF;
            _wished_attempts := ARRAY (SELECT _wished_attempts[place] FROM unnest(admitted) AS place);
        END IF;
        IF admitted IS NULL THEN
            _wished_attempts := NULL;
        ELSIF _wished_tasks IS NULL THEN
            PERFORM ork.launch(_wished_attempts);
        ELSE
            PERFORM ork.write_tasks(_wished_tasks, _changed);
            PERFORM ork.write_attempts(_wished_attempts);
        END IF;
        _launched := ARRAY (SELECT DISTINCT run_id FROM unnest(_wished_attempts));
        IF admitted IS NULL AND _runs IS NULL AND NOT EXISTS (SELECT 1 FROM unnest(_touched) WHERE NOT only_wishes) THEN
            RETURN;
        END IF;
    END IF;
    IF _added IS NOT NULL OR _moved IS NOT NULL OR (_wished_attempts IS NOT NULL AND _wished_tasks IS NULL) THEN
        PERFORM ork.note_tasks(_added, _moved, CASE WHEN _wished_tasks IS NULL THEN _wished_attempts END, _changed);
    END IF;
    -- The runs' own rows, last: whether they need an owner follows from all that was written before, so it cannot be
    -- forgotten. A cancel that came while its owner was deciding must survive a row written without it.
    IF _runs IS NOT NULL THEN
        UPDATE ork.runs AS r SET
            changed = _changed, status = n.status, started_at = n.started_at, finished_at = n.finished_at, error = n.error,
            round = n.round, priority = n.priority, note = n.note,
            cancel_requested_at = CASE
                WHEN n.cancel_requested_at IS NULL AND EXISTS (
                    SELECT 1 FROM ork.commands AS c WHERE c.run_id = r.id AND c.kind = 'cancel' AND c.done_at IS NULL)
                THEN r.cancel_requested_at ELSE n.cancel_requested_at END,
            owner = CASE WHEN n.rest THEN NULL ELSE r.owner END,
            attention = n.status IN ('pending', 'running')
                OR EXISTS (SELECT 1 FROM ork.commands AS c WHERE c.run_id = r.id AND c.done_at IS NULL)
                OR (n.status = 'paused' AND EXISTS (
                    SELECT 1 FROM ork.attempts AS a WHERE a.run_id = r.id AND a.active))
        FROM unnest(_runs) AS n WHERE r.id = n.id;
    END IF;
    IF _touched IS NOT NULL THEN
        UPDATE ork.runs AS r SET
            changed = _changed, owner = CASE WHEN n.rest THEN NULL ELSE r.owner END,
            attention = r.status IN ('pending', 'running')
                OR EXISTS (SELECT 1 FROM ork.commands AS c WHERE c.run_id = r.id AND c.done_at IS NULL)
                OR (r.status = 'paused' AND EXISTS (
                    SELECT 1 FROM ork.attempts AS a WHERE a.run_id = r.id AND a.active))
        FROM unnest(_touched) AS n WHERE r.id = n.id AND (NOT n.only_wishes OR n.id = ANY (_launched));
    END IF;
    IF _alerts IS NOT NULL THEN
        INSERT INTO ork.alerts (kind, workflow, run_id, task, idx, failure, raised_at, due_at, tries, sent)
        SELECT n.kind, r.workflow, n.run_id, n.task, n.idx, n.failure, _now, _now, 0, '{}'
        FROM unnest(_alerts) WITH ORDINALITY AS n (kind, run_id, task, idx, failure, place)
        JOIN ork.runs AS r ON r.id = n.run_id
        ORDER BY n.place;
    END IF;
    IF _succeeded IS NOT NULL THEN
        PERFORM ork.add_recoveries(_succeeded, _now);
    END IF;
    PERFORM ork.tell_others(_slot, _handle);
    told := true;
END $$;

CREATE FUNCTION ork.create_runs(_ids text[], _workflows text[], _versions text[], _triggers text[], _params text[], _scheduled_for timestamp with time zone[], _priorities integer[], _keys text[], _fresh boolean[], _parents text[], _now timestamp with time zone, _slot integer, _handle text) RETURNS SETOF text
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION ork.end_silent_sessions(_seconds double precision) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND application_name = 'ork store'
      AND state = 'active' AND wait_event = 'ClientRead' AND pid <> pg_backend_pid()
      AND query_start < clock_timestamp() - make_interval(secs => _seconds);
END $$;

CREATE FUNCTION ork.forget_schedulers(_ids text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    DELETE FROM ork.schedulers WHERE id = ANY (_ids);
    WITH owned AS (
        SELECT id FROM ork.runs WHERE owner = ANY (_ids) AND owner IS NOT NULL ORDER BY id FOR UPDATE)
    UPDATE ork.runs AS r SET owner = NULL FROM owned WHERE r.id = owned.id;
END $$;

CREATE FUNCTION ork.launch(_attempts ork.attempt_row[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    _tasks integer;
BEGIN
    UPDATE ork.tasks AS t SET
        status = 'dispatched', attempt = n.number, dispatched_at = n.dispatched_at, started_at = NULL, finished_at = NULL,
        exit_code = NULL, retry_at = NULL
    FROM unnest(_attempts) AS n
    WHERE t.run_id = n.run_id AND t.ordinal = n.ordinal AND t.idx = n.idx AND t.status = 'pending';
    GET DIAGNOSTICS _tasks = ROW_COUNT;
    IF _tasks < cardinality(_attempts) THEN
        RAISE SQLSTATE 'ORK02';
    END IF;
    INSERT INTO ork.attempts (
        run_id, ordinal, idx, number, name, status, executor, pool, external_name, token_hash, dispatched_at, seq,
        is_waiting)
    SELECT n.run_id, n.ordinal, n.idx, n.number, n.name, 'dispatched', n.executor, n.pool, n.external_name, n.token_hash,
           n.dispatched_at, 0, false
    FROM unnest(_attempts) AS n;
END $$;

CREATE FUNCTION ork.move(_moved ork.moved[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    _tasks integer;
    _attempts integer;
BEGIN
    UPDATE ork.tasks AS t SET
        status = n.status, started_at = to_timestamp(n.started_at), finished_at = to_timestamp(n.finished_at),
        exit_code = n.exit_code, output = n.output, reason = NULL, cause_name = NULL, cause_idx = NULL, failure = NULL, retry_at = NULL,
        output_key = NULL, output_size = NULL
    FROM unnest(_moved) AS n
    WHERE t.run_id = n.run_id AND t.ordinal = n.ordinal AND t.idx = n.idx AND t.attempt = n.number;
    GET DIAGNOSTICS _tasks = ROW_COUNT;
    UPDATE ork.attempts AS a SET
        status = n.status, pool = n.pool, started_at = to_timestamp(n.started_at),
        finished_at = to_timestamp(n.finished_at), exit_code = n.exit_code, seq = n.seq, seen_at = to_timestamp(n.seen_at), failure = NULL, closing = NULL, closing_since = NULL, waits_for = NULL,
        is_waiting = false
    FROM unnest(_moved) AS n
    WHERE a.run_id = n.run_id AND a.ordinal = n.ordinal AND a.idx = n.idx AND a.number = n.number;
    GET DIAGNOSTICS _attempts = ROW_COUNT;
    IF least(_tasks, _attempts) < cardinality(_moved) THEN
        RAISE SQLSTATE 'ORK02';
    END IF;
END $$;

CREATE FUNCTION ork.next_change() RETURNS bigint
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(5206635::bigint << 40 | last_value) FROM ork.changes;
    RETURN nextval('ork.changes');
END $$;

CREATE FUNCTION ork.note_tasks(_added ork.task_row[], _moved ork.moved[], _launched ork.attempt_row[], _changed bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO ork.task_changes AS c (run_id, changed, ordinals, idxs)
    SELECT n.run_id, _changed, array_agg(n.ordinal), array_agg(n.idx)
    FROM (SELECT run_id, ordinal, idx FROM unnest(_added)
          UNION ALL SELECT run_id, ordinal, idx FROM unnest(_moved)
          UNION ALL SELECT run_id, ordinal, idx FROM unnest(_launched)) AS n
    GROUP BY n.run_id
    ON CONFLICT (run_id, changed) DO UPDATE SET
        ordinals = c.ordinals || excluded.ordinals, idxs = c.idxs || excluded.idxs;
END $$;

CREATE FUNCTION ork.pick_runs(_room integer) RETURNS text[]
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION ork.tell_others(_slot integer, _handle text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE ork.pulse SET number = number + 1 WHERE slot = _slot::smallint;
    PERFORM pg_notify('ork', _handle);
END $$;

CREATE FUNCTION ork.write_attempts(_attempts ork.attempt_row[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO ork.attempts (
        run_id, ordinal, idx, number, name, status, executor, pool, external_name, token_hash, dispatched_at, started_at,
        finished_at, exit_code, failure, closing, closing_since, seq, seen_at, waits_for, is_waiting)
    SELECT n.run_id, n.ordinal, n.idx, n.number, n.name, n.status, n.executor, n.pool, n.external_name, n.token_hash,
           n.dispatched_at, n.started_at, n.finished_at, n.exit_code, n.failure, n.closing, n.closing_since, n.seq, n.seen_at,
           n.waits_for, n.is_waiting
    FROM unnest(_attempts) AS n
    ON CONFLICT (run_id, ordinal, idx, number) DO UPDATE SET
        status = excluded.status, executor = excluded.executor, pool = excluded.pool,
        external_name = excluded.external_name, token_hash = excluded.token_hash,
        dispatched_at = excluded.dispatched_at, started_at = excluded.started_at, finished_at = excluded.finished_at,
        exit_code = excluded.exit_code, failure = excluded.failure, closing = excluded.closing,
        closing_since = excluded.closing_since, seq = excluded.seq, seen_at = excluded.seen_at,
        waits_for = excluded.waits_for, is_waiting = excluded.is_waiting;
END $$;

CREATE FUNCTION ork.write_tasks(_tasks ork.task_row[], _changed bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO ork.tasks AS t (
        run_id, ordinal, idx, name, status, executor, attempt, earlier_attempts, reason, cause_name, cause_idx, failure,
        exit_code, dispatched_at, started_at, finished_at, retry_at, output_key, output_size, output, instances, item,
        cache_key)
    SELECT n.run_id, n.ordinal, n.idx, n.name, n.status, n.executor, n.attempt, n.earlier_attempts, n.reason, n.cause_name,
           n.cause_idx, n.failure, n.exit_code, n.dispatched_at, n.started_at, n.finished_at, n.retry_at, n.output_key,
           n.output_size, n.output, n.instances, n.item, n.cache_key
    FROM unnest(_tasks) AS n
    ON CONFLICT (run_id, ordinal, idx) DO UPDATE SET
        status = excluded.status, executor = excluded.executor, attempt = excluded.attempt,
        earlier_attempts = excluded.earlier_attempts, reason = excluded.reason, cause_name = excluded.cause_name,
        cause_idx = excluded.cause_idx, failure = excluded.failure, exit_code = excluded.exit_code,
        dispatched_at = excluded.dispatched_at, started_at = excluded.started_at, finished_at = excluded.finished_at,
        retry_at = excluded.retry_at, output_key = excluded.output_key, output_size = excluded.output_size,
        output = excluded.output, instances = excluded.instances, item = excluded.item, cache_key = excluded.cache_key;
    -- A commit may write twice: what was there already, and what it launches.
    INSERT INTO ork.task_changes AS c (run_id, changed, ordinals, idxs)
    SELECT n.run_id, _changed, array_agg(n.ordinal), array_agg(n.idx) FROM unnest(_tasks) AS n GROUP BY n.run_id
    ON CONFLICT (run_id, changed) DO UPDATE SET
        ordinals = c.ordinals || excluded.ordinals, idxs = c.idxs || excluded.idxs;
END $$;

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE ork.alerts (
    id bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    workflow text NOT NULL COLLATE pg_catalog."C",
    run_id text COLLATE pg_catalog."C",
    task text COLLATE pg_catalog."C",
    idx integer,
    failure text,
    detail text,
    raised_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone,
    tries integer NOT NULL,
    sent text[] NOT NULL COLLATE pg_catalog."C",
    error text
);

ALTER TABLE ork.alerts ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME ork.alerts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE ork.attempts (
    run_id text NOT NULL COLLATE pg_catalog."C",
    ordinal integer NOT NULL,
    idx integer NOT NULL,
    number integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    executor text NOT NULL COLLATE pg_catalog."C",
    pool text COLLATE pg_catalog."C",
    external_name text NOT NULL COLLATE pg_catalog."C",
    token_hash text NOT NULL COLLATE pg_catalog."C",
    dispatched_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    exit_code bigint,
    failure text,
    closing text COLLATE pg_catalog."C",
    closing_since timestamp with time zone,
    seq bigint NOT NULL,
    seen_at timestamp with time zone,
    waits_for text,
    is_waiting boolean NOT NULL,
    active boolean GENERATED ALWAYS AS ((status = ANY (ARRAY['dispatched'::text, 'running'::text]))) STORED NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE ork.audit (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    by text NOT NULL,
    action text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL,
    detail text
);

ALTER TABLE ork.audit ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME ork.audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE ork.buckets (
    name text NOT NULL COLLATE pg_catalog."C",
    tokens double precision NOT NULL,
    at timestamp with time zone NOT NULL
);

CREATE SEQUENCE ork.changes
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE ork.commands (
    id bigint NOT NULL,
    run_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    asked_by text NOT NULL,
    task text,
    everything boolean NOT NULL,
    comment text,
    asked_at timestamp with time zone NOT NULL,
    done_at timestamp with time zone
);

ALTER TABLE ork.commands ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME ork.commands_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE ork.leftovers (
    run_id text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE ork.limits (
    name text NOT NULL COLLATE pg_catalog."C",
    slots integer NOT NULL
);

CREATE TABLE ork.locations (
    name text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    is_asked boolean DEFAULT false NOT NULL,
    held_until timestamp with time zone,
    digest text COLLATE pg_catalog."C",
    seen text COLLATE pg_catalog."C",
    looked_at timestamp with time zone,
    changed_at timestamp with time zone,
    code text COLLATE pg_catalog."C",
    error text,
    output text
);

CREATE TABLE ork.meta (
    name text NOT NULL COLLATE pg_catalog."C",
    value bytea NOT NULL
);

CREATE TABLE ork.pulse (
    slot smallint NOT NULL,
    number bigint NOT NULL
)
WITH (fillfactor='10');

CREATE TABLE ork.rates (
    name text NOT NULL COLLATE pg_catalog."C",
    count integer NOT NULL,
    seconds double precision NOT NULL
);

CREATE TABLE ork.runs (
    id text NOT NULL COLLATE pg_catalog."C",
    workflow text NOT NULL COLLATE pg_catalog."C",
    version text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    trigger text NOT NULL COLLATE pg_catalog."C",
    params text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    scheduled_for timestamp with time zone,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    error text,
    round integer NOT NULL,
    priority integer NOT NULL,
    cancel_requested_at timestamp with time zone,
    note text,
    fresh boolean NOT NULL,
    parent text COLLATE pg_catalog."C",
    key text COLLATE pg_catalog."C",
    owner text COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    attention boolean NOT NULL,
    changed bigint NOT NULL
);

CREATE TABLE ork.schedulers (
    id text NOT NULL COLLATE pg_catalog."C",
    identity text NOT NULL,
    kind text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    lease_until timestamp with time zone NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE ork.schema (
    number integer NOT NULL
);

CREATE TABLE ork.task_changes (
    run_id text NOT NULL COLLATE pg_catalog."C",
    changed bigint NOT NULL,
    ordinals integer[] NOT NULL,
    idxs integer[] NOT NULL
);

CREATE TABLE ork.tasks (
    run_id text NOT NULL COLLATE pg_catalog."C",
    ordinal integer NOT NULL,
    idx integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    executor text NOT NULL COLLATE pg_catalog."C",
    attempt integer NOT NULL,
    earlier_attempts integer NOT NULL,
    reason text,
    cause_name text COLLATE pg_catalog."C",
    cause_idx integer,
    failure text,
    exit_code bigint,
    dispatched_at timestamp with time zone,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    retry_at timestamp with time zone,
    output_key text COLLATE pg_catalog."C",
    output_size bigint,
    output text,
    instances integer,
    item text,
    cache_key text COLLATE pg_catalog."C",
    cached_at timestamp with time zone GENERATED ALWAYS AS (
CASE
    WHEN ((cache_key IS NOT NULL) AND (status = 'success'::text)) THEN finished_at
    ELSE NULL::timestamp with time zone
END) STORED
)
WITH (fillfactor='50');

CREATE TABLE ork.tokens (
    id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    role text NOT NULL COLLATE pg_catalog."C",
    digest text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone
);

CREATE TABLE ork.versions (
    id text NOT NULL COLLATE pg_catalog."C",
    workflow text NOT NULL COLLATE pg_catalog."C",
    root text NOT NULL,
    source text,
    document text NOT NULL,
    saved_at timestamp with time zone NOT NULL,
    saved bigint NOT NULL
);

CREATE TABLE ork.workflows (
    name text NOT NULL COLLATE pg_catalog."C",
    version text NOT NULL COLLATE pg_catalog."C",
    enabled boolean NOT NULL,
    deployed_at timestamp with time zone NOT NULL,
    origin text,
    schedule text,
    max_active_runs integer,
    fires boolean NOT NULL,
    next_fire timestamp with time zone
);

INSERT INTO ork.alerts OVERRIDING SYSTEM VALUE VALUES (1, 'task', 'failing', 'zmdbrtzk9nee', 'broken', -1, '{"kind":"exception","message":"ValueError: no such table: orders","detail":{"type":"ValueError","message":"no such table: orders","frames":[{"file":"tasks.py","line":39,"function":"fail","source":"    raise ValueError(\"no such table: orders\")","caret":[4,45]}],"inputs":{}}}', NULL, '2026-11-16 15:10:34.773375+00', NULL, 1, '{}', NULL);
INSERT INTO ork.alerts OVERRIDING SYSTEM VALUE VALUES (2, 'run', 'failing', 'zmdbrtzk9nee', NULL, NULL, '{"kind":"exception","message":"ValueError: no such table: orders","detail":{"type":"ValueError","message":"no such table: orders","frames":[{"file":"tasks.py","line":39,"function":"fail","source":"    raise ValueError(\"no such table: orders\")","caret":[4,45]}],"inputs":{}}}', NULL, '2026-11-16 15:10:34.800254+00', NULL, 1, '{}', NULL);
INSERT INTO ork.alerts OVERRIDING SYSTEM VALUE VALUES (3, 'task', 'failing', 'y0t75bxpas3w', 'broken', -1, '{"kind":"exception","message":"ValueError: no such table: orders","detail":{"type":"ValueError","message":"no such table: orders","frames":[{"file":"tasks.py","line":39,"function":"fail","source":"    raise ValueError(\"no such table: orders\")","caret":[4,45]}],"inputs":{}}}', NULL, '2026-11-16 15:10:35.032766+00', NULL, 1, '{}', NULL);
INSERT INTO ork.alerts OVERRIDING SYSTEM VALUE VALUES (4, 'run', 'failing', 'y0t75bxpas3w', NULL, NULL, '{"kind":"exception","message":"ValueError: no such table: orders","detail":{"type":"ValueError","message":"no such table: orders","frames":[{"file":"tasks.py","line":39,"function":"fail","source":"    raise ValueError(\"no such table: orders\")","caret":[4,45]}],"inputs":{}}}', NULL, '2026-11-16 15:10:35.061102+00', NULL, 1, '{}', NULL);

INSERT INTO ork.attempts VALUES ('yzkcn57p4cv1', 0, -1, 1, 'extract', 'success', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:yzkcn57p4cv1/extract/0/1', '03aae4b3afdbd185a4b1988d610e98393aff052acf30ebba6af96cba90350f5c', '2026-11-16 15:10:34.408239+00', '2026-11-16 15:10:34.507393+00', '2026-11-16 15:10:34.538207+00', 0, NULL, NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('yzkcn57p4cv1', 1, -1, 1, 'transform', 'success', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:yzkcn57p4cv1/transform/0/1', 'e72b508768bb5adba4155a3c89f53a62023103a3209dc19463b998efb224b41c', '2026-11-16 15:10:34.538625+00', '2026-11-16 15:10:34.556547+00', '2026-11-16 15:10:34.583154+00', 0, NULL, NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('yzkcn57p4cv1', 2, -1, 1, 'load', 'success', 'process', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:yzkcn57p4cv1/load/0/1', 'de9c996d2a6d9f64b0d9a51fd831be605e7e969d2f89940a6c2eef5ecfd7f8ce', '2026-11-16 15:10:34.583693+00', '2026-11-16 15:10:34.594136+00', '2026-11-16 15:10:34.604845+00', 0, NULL, NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('zmdbrtzk9nee', 0, -1, 1, 'broken', 'failed', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:zmdbrtzk9nee/broken/0/1', '4710cf83a6fd165898d8dff6b4e44d726e23d7dd8aaeccee73c3dbd22502aba0', '2026-11-16 15:10:34.61383+00', '2026-11-16 15:10:34.638259+00', '2026-11-16 15:10:34.649154+00', 1, '{"kind":"exception","message":"ValueError: no such table: orders","detail":{"type":"ValueError","message":"no such table: orders","frames":[{"file":"tasks.py","line":39,"function":"fail","source":"    raise ValueError(\"no such table: orders\")","caret":[4,45]}],"inputs":{}}}', NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('zmdbrtzk9nee', 0, -1, 2, 'broken', 'failed', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:zmdbrtzk9nee/broken/0/2', 'cd2db5e6edac1b047713f7a69b2a867e97d0c044c54ff0996e824992b22fb713', '2026-11-16 15:10:34.750827+00', '2026-11-16 15:10:34.760786+00', '2026-11-16 15:10:34.772786+00', 1, '{"kind":"exception","message":"ValueError: no such table: orders","detail":{"type":"ValueError","message":"no such table: orders","frames":[{"file":"tasks.py","line":39,"function":"fail","source":"    raise ValueError(\"no such table: orders\")","caret":[4,45]}],"inputs":{}}}', NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('zmdbrtzk9nee', 2, -1, 1, 'tidy', 'success', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:zmdbrtzk9nee/tidy/0/1', '64fa1725f6dce7330de52388afc77b923e93c9a34080126eb9d41e6a4e91a404', '2026-11-16 15:10:34.773375+00', '2026-11-16 15:10:34.787313+00', '2026-11-16 15:10:34.799689+00', 0, NULL, NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('y0t75bxpas3w', 0, -1, 1, 'broken', 'failed', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:y0t75bxpas3w/broken/0/1', '698337abec2ff2bfcbe67dae3d87ce5e645573950e047ce7eb3863da55121bbb', '2026-11-16 15:10:34.863693+00', '2026-11-16 15:10:34.870697+00', '2026-11-16 15:10:34.888209+00', 1, '{"kind":"exception","message":"ValueError: no such table: orders","detail":{"type":"ValueError","message":"no such table: orders","frames":[{"file":"tasks.py","line":39,"function":"fail","source":"    raise ValueError(\"no such table: orders\")","caret":[4,45]}],"inputs":{}}}', NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('y0t75bxpas3w', 0, -1, 2, 'broken', 'failed', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:y0t75bxpas3w/broken/0/2', 'd722f733f8ccdfff651211329b8332e32b491c0aae6f5fa3203a52067f77a834', '2026-11-16 15:10:34.989631+00', '2026-11-16 15:10:35.0154+00', '2026-11-16 15:10:35.03229+00', 1, '{"kind":"exception","message":"ValueError: no such table: orders","detail":{"type":"ValueError","message":"no such table: orders","frames":[{"file":"tasks.py","line":39,"function":"fail","source":"    raise ValueError(\"no such table: orders\")","caret":[4,45]}],"inputs":{}}}', NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('y0t75bxpas3w', 2, -1, 1, 'tidy', 'success', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:y0t75bxpas3w/tidy/0/1', '124c77e47d2230cd639129abad34d75392597edf8e8d1836dd0e93f38188029f', '2026-11-16 15:10:35.032766+00', '2026-11-16 15:10:35.041133+00', '2026-11-16 15:10:35.060601+00', 0, NULL, NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('bq1dav2js0jt', 0, -1, 1, 'look_up', 'success', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:bq1dav2js0jt/look_up/0/1', '342fdab09d8e593b11c54707a62af7e98993678087c2c9f23c54f95de371a15c', '2026-11-16 15:10:35.117781+00', '2026-11-16 15:10:35.130108+00', '2026-11-16 15:10:35.134761+00', 0, NULL, NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('zrtt54r9a5wf', 0, -1, 1, 'forked', 'cancelled', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:zrtt54r9a5wf/forked/0/1', 'e572d10473719eba09200cb17fd0ef39f4acc92fff5e4d3b850fd54b74b74917', '2026-11-16 15:10:35.314637+00', '2026-11-16 15:10:35.32639+00', '2026-11-16 15:10:35.546925+00', NULL, '{"kind":"cancelled","message":"cancelled by root","detail":null}', 'cancel', '2026-11-16 15:10:35.527701+00', 2, '2026-11-16 15:10:35.440567+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('zrtt54r9a5wf', 1, -1, 1, 'interpreter', 'cancelled', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:zrtt54r9a5wf/interpreter/0/1', '89bf64ba414ee1b8b2fc8201b32ab2e234c2943b8ab5085825d1631f789b3654', '2026-11-16 15:10:35.314637+00', '2026-11-16 15:10:35.345129+00', '2026-11-16 15:10:35.566561+00', NULL, '{"kind":"cancelled","message":"cancelled by root","detail":null}', 'cancel', '2026-11-16 15:10:35.527701+00', 2, '2026-11-16 15:10:35.452782+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('zrtt54r9a5wf', 2, -1, 1, 'shared', 'cancelled', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:zrtt54r9a5wf/shared/0/1', '5731a64377faa62a1a14df5f7e4cf34ba8e3fa30a3408c03f314306260991b3e', '2026-11-16 15:10:35.314637+00', '2026-11-16 15:10:35.327039+00', '2026-11-16 15:10:35.57594+00', NULL, '{"kind":"cancelled","message":"cancelled by root","detail":null}', 'cancel', '2026-11-16 15:10:35.527701+00', 2, '2026-11-16 15:10:35.480184+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('zrtt54r9a5wf', 3, -1, 1, 'command', 'cancelled', 'process', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:zrtt54r9a5wf/command/0/1', '1e98368e9dfb8265d59974d59a2686782b4779c6fd8381def114eb1388fd1dec', '2026-11-16 15:10:35.314637+00', '2026-11-16 15:10:35.32231+00', '2026-11-16 15:10:35.581317+00', NULL, '{"kind":"cancelled","message":"cancelled by root","detail":null}', 'cancel', '2026-11-16 15:10:35.527701+00', 2, '2026-11-16 15:10:35.438162+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('8qzqww3wmt7t', 0, -1, 1, 'extract', 'success', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:8qzqww3wmt7t/extract/0/1', '86e396f4ee4dbeec500c5bb8fc886b400ba202c6d7a8bd9b6c901cd02ee72468', '2026-11-16 15:10:36.724561+00', '2026-11-16 15:10:36.74643+00', '2026-11-16 15:10:36.769221+00', 0, NULL, NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('w8mpdb03jcsy', 0, -1, 1, 'big', 'success', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:w8mpdb03jcsy/big/0/1', '86d045e478af5389348bcf0a900a9b24604663e16bf27f80f37a163c02ccd589', '2026-11-16 15:10:39.305093+00', '2026-11-16 15:10:39.320542+00', '2026-11-16 15:10:39.359343+00', 0, NULL, NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('z4tvdjxta20v', 0, -1, 1, 'extract', 'success', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:z4tvdjxta20v/extract/0/1', '0488bdc92f54a6ade712100141c74e7d5caf530caaffdba637d0a574521a9432', '2026-11-16 15:10:36.724561+00', '2026-11-16 15:10:36.744389+00', '2026-11-16 15:10:36.793872+00', 0, NULL, NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('8qzqww3wmt7t', 1, -1, 1, 'transform', 'success', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:8qzqww3wmt7t/transform/0/1', '663bd57e3a56c246d85f6b39ad4f389a60b515793f1653896571c00911e7b1b2', '2026-11-16 15:10:36.769785+00', '2026-11-16 15:10:36.780819+00', '2026-11-16 15:10:36.806938+00', 0, NULL, NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('8qzqww3wmt7t', 2, -1, 1, 'load', 'success', 'process', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:8qzqww3wmt7t/load/0/1', 'd6f794bd466292bad182c295eca4da54af3c1a9d9a2623e10cc2fb047e37e474', '2026-11-16 15:10:36.807315+00', '2026-11-16 15:10:36.823283+00', '2026-11-16 15:10:36.832448+00', 0, NULL, NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('z4tvdjxta20v', 1, -1, 1, 'transform', 'success', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:z4tvdjxta20v/transform/0/1', '132ca21cce43878c9687c44d2749cb089079b21d4e3c046f67f939fe4fb93638', '2026-11-16 15:10:36.797713+00', '2026-11-16 15:10:36.803541+00', '2026-11-16 15:10:36.836864+00', 0, NULL, NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('z4tvdjxta20v', 2, -1, 1, 'load', 'success', 'process', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:z4tvdjxta20v/load/0/1', '1daa0dbf182a808dba6f7c77ee3289ae92f9bc9a57ff9cd391ea6dd1dc1f5103', '2026-11-16 15:10:36.83836+00', '2026-11-16 15:10:36.851183+00', '2026-11-16 15:10:36.861594+00', 0, NULL, NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('gb4msazpy308', 0, -1, 1, 'forked', 'running', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:gb4msazpy308/forked/0/1', '56e7f7bde7ac404776b727ed8dc7498a7ae207258adb3cba66c30bd3349ab98a', '2026-11-16 15:10:37.220518+00', '2026-11-16 15:10:37.230254+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:37.345645+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('gb4msazpy308', 3, -1, 1, 'command', 'running', 'process', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:gb4msazpy308/command/0/1', '8bcd783d0e0bd659d06749dfcf8cb13ac3ffbe05b4d80ba71a744f3b68a876dc', '2026-11-16 15:10:37.220518+00', '2026-11-16 15:10:37.232837+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:37.345645+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('gb4msazpy308', 1, -1, 1, 'interpreter', 'running', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:gb4msazpy308/interpreter/0/1', '27a71f7e03a9b3805e7fcbde46c56a7fb0fb21ec9be691821310506c50c050eb', '2026-11-16 15:10:37.220518+00', '2026-11-16 15:10:37.251476+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:37.362383+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('gb4msazpy308', 2, -1, 1, 'shared', 'running', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:gb4msazpy308/shared/0/1', '460f06b92063d4581a758cfa94a23390c835a372b864b606ad88b03fa0770729', '2026-11-16 15:10:37.220518+00', '2026-11-16 15:10:37.237061+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:37.390501+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('j3esr69gqvzq', 0, -1, 1, 'forked', 'running', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:j3esr69gqvzq/forked/0/1', 'e02f9fc6c9f602704107be5e233affcfb2bbbd552c469f218a82453d79afb703', '2026-11-16 15:10:37.464196+00', '2026-11-16 15:10:37.476224+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:37.588343+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('j3esr69gqvzq', 1, -1, 1, 'interpreter', 'running', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:j3esr69gqvzq/interpreter/0/1', '7ff3504d676d214c894455e89c399686130bdaecfaae957a5143eb3bb374051e', '2026-11-16 15:10:37.464196+00', '2026-11-16 15:10:37.49565+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:37.607894+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('j3esr69gqvzq', 2, -1, 1, 'shared', 'running', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:j3esr69gqvzq/shared/0/1', 'd700d3160b6f8db6f50ae170d55c34a003e1dbf633a43fbf74d5072e2ec50d81', '2026-11-16 15:10:37.464196+00', '2026-11-16 15:10:37.480024+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:37.633018+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('j3esr69gqvzq', 3, -1, 1, 'command', 'running', 'process', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:j3esr69gqvzq/command/0/1', '69f7b889746753203ba4a77b66a4ef7202c4a3a8da91b6660aee6e2ecc403fba', '2026-11-16 15:10:37.464196+00', '2026-11-16 15:10:37.481714+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:37.607894+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('hvpzjkznyjcz', 3, -1, 1, 'command', 'running', 'process', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:hvpzjkznyjcz/command/0/1', '1eabab4091ff585d80a4d302fe3e9334b2ac660b56c89bcda38744bbb8e8736f', '2026-11-16 15:10:37.649271+00', '2026-11-16 15:10:37.669896+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:37.78032+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('hvpzjkznyjcz', 0, -1, 1, 'forked', 'running', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:hvpzjkznyjcz/forked/0/1', 'b6228a65821f4966bec1227b7383d43ae7f51f86d190e8326a0f6f7d072ad45d', '2026-11-16 15:10:37.649271+00', '2026-11-16 15:10:37.666499+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:37.78611+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('hvpzjkznyjcz', 1, -1, 1, 'interpreter', 'running', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:hvpzjkznyjcz/interpreter/0/1', '4279a8c4b6e748631a14fa89dd5b88165b33906a1a507f89b789b52279ce5a6f', '2026-11-16 15:10:37.649271+00', '2026-11-16 15:10:37.696508+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:37.811048+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('hvpzjkznyjcz', 2, -1, 1, 'shared', 'running', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:hvpzjkznyjcz/shared/0/1', 'cf3b9ad2b22b162961fa415a8db2a40c382e9e424d83668b1e5ad19084bc5252', '2026-11-16 15:10:37.649271+00', '2026-11-16 15:10:37.665021+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:37.821949+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('k1vh4g2xjej0', 0, -1, 1, 'work', 'running', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:k1vh4g2xjej0/work/0/1', 'd33708d31c10a17b5f9f955ebd8848e8ab48b6c611563d0c09748ce5e4a4163f', '2026-11-16 15:10:37.871275+00', '2026-11-16 15:10:37.881249+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:37.999587+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('bhnhy7xkxcgj', 0, 0, 1, 'each', 'success', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:bhnhy7xkxcgj/each/0/1', '4299b5a6d19682c616dedd3ab2d8938755a77f2e230825e1401b4f1a1cf87d20', '2026-11-16 15:10:38.079304+00', '2026-11-16 15:10:38.090783+00', '2026-11-16 15:10:38.151295+00', 0, NULL, NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('bhnhy7xkxcgj', 0, 2, 1, 'each', 'success', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:bhnhy7xkxcgj/each/2/1', '0c0298c9ca191fca197b8dd078f0c603864f32582187a830df0551c28b978c69', '2026-11-16 15:10:38.079304+00', '2026-11-16 15:10:38.094769+00', '2026-11-16 15:10:38.172571+00', 0, NULL, NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('bhnhy7xkxcgj', 0, 1, 1, 'each', 'running', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:bhnhy7xkxcgj/each/1/1', '399b46346227e207594474bcaafd5f3c8700d92039f6b6c814c46007d0ada242', '2026-11-16 15:10:38.079304+00', '2026-11-16 15:10:38.09517+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:38.21945+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('bhnhy7xkxcgj', 0, 4, 1, 'each', 'success', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:bhnhy7xkxcgj/each/4/1', '44c29924538c77bf6be647613bed07c92aa4ca356c467532681361e7e816c243', '2026-11-16 15:10:38.174766+00', '2026-11-16 15:10:38.190241+00', '2026-11-16 15:10:38.228442+00', 0, NULL, NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('bhnhy7xkxcgj', 0, 3, 1, 'each', 'running', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:bhnhy7xkxcgj/each/3/1', '0c8cb6a186af2aa425adae2566c171a7bd43e8bcdb2dae14f977ffbf5000cf8a', '2026-11-16 15:10:38.153887+00', '2026-11-16 15:10:38.180592+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:38.297625+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('bhnhy7xkxcgj', 0, 5, 1, 'each', 'running', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:bhnhy7xkxcgj/each/5/1', '25699fca33b34e2cf0e4e0aa9190ad0eb04f36e6275e7eb8585d7ca7b6b8de09', '2026-11-16 15:10:38.229003+00', '2026-11-16 15:10:38.235163+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:38.357608+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('gsr8xmw6ygq6', 0, -1, 1, 'flaky', 'failed', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:gsr8xmw6ygq6/flaky/0/1', 'b43f6d056f0a9e3f1845f7d4ea2694fe88273d332bc8ab4736b2d7151d58947f', '2026-11-16 15:10:38.339276+00', '2026-11-16 15:10:38.355584+00', '2026-11-16 15:10:38.389883+00', 1, '{"kind":"exception","message":"ValueError: not yet","detail":{"type":"ValueError","message":"not yet","frames":[{"file":"tasks.py","line":45,"function":"fail_once","source":"        raise ValueError(\"not yet\")","caret":[8,35]}],"inputs":{}}}', NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('kq6meeba8nxp', 0, -1, 1, 'build', 'success', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:kq6meeba8nxp/build/0/1', '49d45ef148591ae2bf7535bf2f7d80787986a9858a6aa734644d874b84cdd04a', '2026-11-16 15:10:38.570273+00', '2026-11-16 15:10:38.58157+00', '2026-11-16 15:10:38.586258+00', 0, NULL, NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('a89edc1hs1mm', 0, -1, 1, 'submit', 'running', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:a89edc1hs1mm/submit/0/1', '271777b4df05c1e120a41a7eabd739adbef5faa51a0f6ae7599e5a0e4e71372b', '2026-11-16 15:10:38.81103+00', '2026-11-16 15:10:38.825745+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:38.825745+00', '[{"call":"tasks:is_released","args":{},"every":0.2}]', true, DEFAULT);
INSERT INTO ork.attempts VALUES ('bjre4wnt644t', 0, -1, 1, 'child', 'running', 'workflow', NULL, 'run:583gqa0rgwy8', '796d0e571f9486ae9f572e39b33363ccf983f3367b1b4d0731f9263aff69b836', '2026-11-16 15:10:39.066821+00', '2026-11-16 15:10:39.087723+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:39.087723+00', '[{"run":"583gqa0rgwy8","workflow":"sheltered"}]', true, DEFAULT);
INSERT INTO ork.attempts VALUES ('583gqa0rgwy8', 0, -1, 1, 'work', 'running', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:583gqa0rgwy8/work/0/1', 'fc13bd71de6ec01c1df99b9242e8d18b1fe1f0976288f86f921838a12c9f93b0', '2026-11-16 15:10:39.087723+00', '2026-11-16 15:10:39.096811+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:39.20902+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('ymtfpprtmsj3', 0, -1, 1, 'work', 'running', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:ymtfpprtmsj3/work/0/1', '3d39ff298709c1bb7d2969223745cc3035d22647293072ccd27b8d8dcad3b1ce', '2026-11-16 15:10:39.527298+00', '2026-11-16 15:10:39.543159+00', NULL, NULL, '{"kind":"cancelled","message":"cancelled by root","detail":null}', 'cancel', '2026-11-16 15:10:41.842585+00', 1, '2026-11-16 15:10:39.658359+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('w8mpdb03jcsy', 1, -1, 1, 'count', 'running', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:w8mpdb03jcsy/count/0/1', 'b589a32ad231abf62fb47127cf0a83a8f469ea34b6b4086ed39c8e573f7d9272', '2026-11-16 15:10:39.359883+00', '2026-11-16 15:10:39.368293+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:39.500368+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('b1twte5h2f5g', 0, -1, 1, 'work', 'running', 'python', 'narrow', 'local:@HOST@:@BOOT@:@NAMESPACE@:b1twte5h2f5g/work/0/1', '39345c8dfb1432ebe2c49184721673f8c7bd0227ad6882a1e92d40694dacb3a8', '2026-11-16 15:10:39.787689+00', '2026-11-16 15:10:39.804707+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:39.918866+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('bgg978mg4n4p', 0, -1, 1, 'look', 'success', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:bgg978mg4n4p/look/0/1', '15460197431c7297b22c6ff506c3b8ebca82c178212d7ae6a819e48c57aa9aad', '2026-11-16 15:10:40.044487+00', '2026-11-16 15:10:40.063071+00', '2026-11-16 15:10:40.087008+00', 0, NULL, NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('bgg978mg4n4p', 2, -1, 1, 'few', 'success', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:bgg978mg4n4p/few/0/1', 'c9bbf13832744fcbe2eb0b33c5c87afd1c274727eda5a9b8736173b51afd7ff4', '2026-11-16 15:10:40.087499+00', '2026-11-16 15:10:40.095578+00', '2026-11-16 15:10:40.115427+00', 0, NULL, NULL, NULL, 1, NULL, NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('bgg978mg4n4p', 3, -1, 1, 'after', 'running', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:bgg978mg4n4p/after/0/1', '4e4a90148ece21b2060745682ef75d2c9f2ac1d7da25b27e1a22a933ebe84ea8', '2026-11-16 15:10:40.115905+00', '2026-11-16 15:10:40.120924+00', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-16 15:10:40.239384+00', NULL, false, DEFAULT);
INSERT INTO ork.attempts VALUES ('vyw24jp4hr35', 0, -1, 1, 'flaky', 'failed', 'python', NULL, 'local:@HOST@:@BOOT@:@NAMESPACE@:vyw24jp4hr35/flaky/0/1', '0471e7e1f4299039a197162fedbf42c687b61a933a3cfbd12a907ae593caf822', '2026-11-16 15:10:40.688549+00', '2026-11-16 15:10:40.699784+00', '2026-11-16 15:10:40.727993+00', 1, '{"kind":"exception","message":"ValueError: not yet","detail":{"type":"ValueError","message":"not yet","frames":[{"file":"tasks.py","line":45,"function":"fail_once","source":"        raise ValueError(\"not yet\")","caret":[8,35]}],"inputs":{}}}', NULL, NULL, 1, NULL, NULL, false, DEFAULT);

INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (1, '2026-11-16 15:10:34.075634+00', 'root', 'workflow.deploy', 'asking', '{"version": "de53f8bf3b41ae00"}');
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (2, '2026-11-16 15:10:34.078485+00', 'root', 'workflow.deploy', 'branching', '{"version": "2193666a33615679"}');
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (3, '2026-11-16 15:10:34.080589+00', 'root', 'workflow.deploy', 'cached', '{"version": "6db09dc085e56e89"}');
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (4, '2026-11-16 15:10:34.082927+00', 'root', 'workflow.deploy', 'deferring', '{"version": "1e888030f08c32f9"}');
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (5, '2026-11-16 15:10:34.085194+00', 'root', 'workflow.deploy', 'failing', '{"version": "e6a627f7795fd204"}');
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (6, '2026-11-16 15:10:34.087512+00', 'root', 'workflow.deploy', 'fan', '{"version": "faa1545ba80534ee"}');
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (7, '2026-11-16 15:10:34.089787+00', 'root', 'workflow.deploy', 'holding', '{"version": "5c3c2a115aea7ead"}');
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (8, '2026-11-16 15:10:34.091695+00', 'root', 'workflow.deploy', 'large', '{"version": "3dbbeb346de0e114"}');
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (9, '2026-11-16 15:10:34.093576+00', 'root', 'workflow.deploy', 'late', '{"version": "c96cd2eb3d7a7306"}');
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (10, '2026-11-16 15:10:34.095588+00', 'root', 'workflow.deploy', 'parent', '{"version": "16d0777a8faf5440"}');
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (11, '2026-11-16 15:10:34.097726+00', 'root', 'workflow.deploy', 'sheltered', '{"version": "9355673ef4b89de5"}');
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (12, '2026-11-16 15:10:34.099739+00', 'root', 'workflow.deploy', 'retrying', '{"version": "afb3e09b16cc4cf5"}');
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (13, '2026-11-16 15:10:34.101924+00', 'root', 'workflow.deploy', 'sample', '{"version": "8507e026a6078b44"}');
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (14, '2026-11-16 15:10:34.104003+00', 'root', 'workflow.deploy', 'sheltered', '{"version": "9355673ef4b89de5"}');
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (15, '2026-11-16 15:10:34.106141+00', 'root', 'workflow.deploy', 'single', '{"version": "7c2352fac107bf39"}');
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (16, '2026-11-16 15:10:34.108151+00', 'root', 'workflow.deploy', 'stubborn', '{"version": "77476b39f67a29d2"}');
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (17, '2026-11-16 15:10:35.528388+00', 'root', 'run.cancel', 'zrtt54r9a5wf', NULL);
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (18, '2026-11-16 15:10:40.93842+00', 'root', 'run.pause', 'vyw24jp4hr35', NULL);
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (19, '2026-11-16 15:10:41.330803+00', 'root', 'run.pause', 'hvpzjkznyjcz', NULL);
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (20, '2026-11-16 15:10:41.843157+00', 'root', 'run.cancel', 'ymtfpprtmsj3', NULL);
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (21, '2026-11-16 15:10:43.049772+00', 'root', 'run.cancel', 'j3esr69gqvzq', NULL);
INSERT INTO ork.audit OVERRIDING SYSTEM VALUE VALUES (22, '2026-11-16 15:10:43.65196+00', 'root', 'run.retry', 'y0t75bxpas3w', NULL);

INSERT INTO ork.commands OVERRIDING SYSTEM VALUE VALUES (1, 'zrtt54r9a5wf', 'cancel', 'root', NULL, false, NULL, '2026-11-16 15:10:35.521959+00', '2026-11-16 15:10:35.527701+00');
INSERT INTO ork.commands OVERRIDING SYSTEM VALUE VALUES (2, 'vyw24jp4hr35', 'pause', 'root', NULL, false, NULL, '2026-11-16 15:10:40.931004+00', '2026-11-16 15:10:40.938783+00');
INSERT INTO ork.commands OVERRIDING SYSTEM VALUE VALUES (3, 'hvpzjkznyjcz', 'pause', 'root', NULL, false, NULL, '2026-11-16 15:10:41.322591+00', '2026-11-16 15:10:41.329658+00');
INSERT INTO ork.commands OVERRIDING SYSTEM VALUE VALUES (4, 'ymtfpprtmsj3', 'cancel', 'root', NULL, false, NULL, '2026-11-16 15:10:41.835311+00', '2026-11-16 15:10:41.842585+00');
INSERT INTO ork.commands OVERRIDING SYSTEM VALUE VALUES (5, 'j3esr69gqvzq', 'cancel', 'root', NULL, false, NULL, '2026-11-16 15:10:43.04336+00', NULL);
INSERT INTO ork.commands OVERRIDING SYSTEM VALUE VALUES (6, 'y0t75bxpas3w', 'retry', 'root', NULL, false, NULL, '2026-11-16 15:10:43.64479+00', NULL);

INSERT INTO ork.limits VALUES ('*', 32);
INSERT INTO ork.limits VALUES ('executor:process', 16);
INSERT INTO ork.limits VALUES ('pool:narrow', 1);

INSERT INTO ork.meta VALUES ('signing_key', '\x5ce82698c9dc44fb04dbfa15d6f89cc63ddb3b5e09547199f21517c12208f407');

INSERT INTO ork.pulse VALUES (9, 0);
INSERT INTO ork.pulse VALUES (12, 0);
INSERT INTO ork.pulse VALUES (11, 3);
INSERT INTO ork.pulse VALUES (10, 2);
INSERT INTO ork.pulse VALUES (2, 1);
INSERT INTO ork.pulse VALUES (13, 2);
INSERT INTO ork.pulse VALUES (7, 102);
INSERT INTO ork.pulse VALUES (5, 1);
INSERT INTO ork.pulse VALUES (4, 4);
INSERT INTO ork.pulse VALUES (1, 1);
INSERT INTO ork.pulse VALUES (3, 2);
INSERT INTO ork.pulse VALUES (14, 3);
INSERT INTO ork.pulse VALUES (6, 1);
INSERT INTO ork.pulse VALUES (8, 4);
INSERT INTO ork.pulse VALUES (15, 1);
INSERT INTO ork.pulse VALUES (0, 2);

INSERT INTO ork.runs VALUES ('yzkcn57p4cv1', 'sample', '8507e026a6078b44', 'success', 'manual', '{"second":2}', '2026-11-16 15:10:34.305827+00', NULL, '2026-11-16 15:10:34.408239+00', '2026-11-16 15:10:34.605633+00', NULL, 1, 0, NULL, NULL, false, NULL, NULL, NULL, 1, false, 22);
INSERT INTO ork.runs VALUES ('zmdbrtzk9nee', 'failing', 'e6a627f7795fd204', 'failed', 'manual', '{}', '2026-11-16 15:10:34.579114+00', NULL, '2026-11-16 15:10:34.61383+00', '2026-11-16 15:10:34.800254+00', 'task `broken` failed: ValueError: no such table: orders', 1, 0, NULL, NULL, false, NULL, NULL, NULL, 1, false, 28);
INSERT INTO ork.runs VALUES ('bq1dav2js0jt', 'cached', '6db09dc085e56e89', 'success', 'manual', '{}', '2026-11-16 15:10:35.077092+00', NULL, '2026-11-16 15:10:35.117781+00', '2026-11-16 15:10:35.1357+00', NULL, 1, 0, NULL, NULL, false, NULL, NULL, NULL, 1, false, 37);
INSERT INTO ork.runs VALUES ('zrtt54r9a5wf', 'holding', '5c3c2a115aea7ead', 'cancelled', 'manual', '{}', '2026-11-16 15:10:35.289251+00', NULL, '2026-11-16 15:10:35.314637+00', '2026-11-16 15:10:35.590187+00', NULL, 1, 0, '2026-11-16 15:10:35.527701+00', 'cancelled by root', false, NULL, NULL, NULL, 1, false, 49);
INSERT INTO ork.runs VALUES ('8qzqww3wmt7t', 'sample', '8507e026a6078b44', 'success', 'backfill', '{"second":2}', '2026-11-16 15:10:36.707704+00', '2026-01-02 01:00:00+00', '2026-11-16 15:10:36.724561+00', '2026-11-16 15:10:36.833073+00', NULL, 1, 0, NULL, NULL, false, NULL, NULL, NULL, 1, false, 55);
INSERT INTO ork.runs VALUES ('z4tvdjxta20v', 'sample', '8507e026a6078b44', 'success', 'backfill', '{"second":2}', '2026-11-16 15:10:36.707704+00', '2026-01-01 01:00:00+00', '2026-11-16 15:10:36.724561+00', '2026-11-16 15:10:36.862049+00', NULL, 1, 0, NULL, NULL, false, NULL, NULL, NULL, 1, false, 57);
INSERT INTO ork.runs VALUES ('jrjfr8va8npm', 'cached', '6db09dc085e56e89', 'success', 'manual', '{}', '2026-11-16 15:10:36.968214+00', NULL, '2026-11-16 15:10:36.997154+00', '2026-11-16 15:10:36.997154+00', NULL, 1, 0, NULL, NULL, false, NULL, NULL, NULL, 1, false, 59);
INSERT INTO ork.runs VALUES ('gb4msazpy308', 'holding', '5c3c2a115aea7ead', 'running', 'manual', '{}', '2026-11-16 15:10:37.186777+00', NULL, '2026-11-16 15:10:37.220518+00', NULL, NULL, 1, 0, NULL, NULL, false, NULL, NULL, '56c84f0c09698ac1', 1, true, 64);
INSERT INTO ork.runs VALUES ('k1vh4g2xjej0', 'late', 'c96cd2eb3d7a7306', 'running', 'manual', '{}', '2026-11-16 15:10:37.841051+00', NULL, '2026-11-16 15:10:37.871275+00', NULL, NULL, 1, 0, NULL, NULL, false, NULL, NULL, '56c84f0c09698ac1', 1, true, 78);
INSERT INTO ork.runs VALUES ('bhnhy7xkxcgj', 'fan', 'faa1545ba80534ee', 'running', 'manual', '{}', '2026-11-16 15:10:38.046738+00', NULL, '2026-11-16 15:10:38.079304+00', NULL, NULL, 1, 0, NULL, NULL, false, NULL, NULL, '56c84f0c09698ac1', 1, true, 88);
INSERT INTO ork.runs VALUES ('gsr8xmw6ygq6', 'retrying', 'afb3e09b16cc4cf5', 'running', 'manual', '{}', '2026-11-16 15:10:38.307028+00', NULL, '2026-11-16 15:10:38.339276+00', NULL, NULL, 1, 0, NULL, NULL, false, NULL, NULL, '56c84f0c09698ac1', 1, true, 89);
INSERT INTO ork.runs VALUES ('kq6meeba8nxp', 'asking', 'de53f8bf3b41ae00', 'running', 'manual', '{}', '2026-11-16 15:10:38.536532+00', NULL, '2026-11-16 15:10:38.570273+00', NULL, NULL, 1, 0, NULL, NULL, false, NULL, NULL, '56c84f0c09698ac1', 1, true, 92);
INSERT INTO ork.runs VALUES ('a89edc1hs1mm', 'deferring', '1e888030f08c32f9', 'running', 'manual', '{}', '2026-11-16 15:10:38.778959+00', NULL, '2026-11-16 15:10:38.81103+00', NULL, NULL, 1, 0, NULL, NULL, false, NULL, NULL, '56c84f0c09698ac1', 1, true, 95);
INSERT INTO ork.runs VALUES ('bjre4wnt644t', 'parent', '16d0777a8faf5440', 'running', 'manual', '{}', '2026-11-16 15:10:39.031974+00', NULL, '2026-11-16 15:10:39.066821+00', NULL, NULL, 1, 0, NULL, NULL, false, NULL, NULL, '56c84f0c09698ac1', 1, true, 99);
INSERT INTO ork.runs VALUES ('583gqa0rgwy8', 'sheltered', '9355673ef4b89de5', 'running', 'manual', '{"label":"one"}', '2026-11-16 15:10:39.075563+00', NULL, '2026-11-16 15:10:39.087723+00', NULL, NULL, 1, 0, NULL, NULL, false, 'bjre4wnt644t/child/0/1', 'bjre4wnt644t/child/0/1', '56c84f0c09698ac1', 1, true, 100);
INSERT INTO ork.runs VALUES ('w8mpdb03jcsy', 'large', '3dbbeb346de0e114', 'running', 'manual', '{}', '2026-11-16 15:10:39.272999+00', NULL, '2026-11-16 15:10:39.305093+00', NULL, NULL, 1, 0, NULL, NULL, false, NULL, NULL, '56c84f0c09698ac1', 1, true, 104);
INSERT INTO ork.runs VALUES ('b1twte5h2f5g', 'single', '7c2352fac107bf39', 'running', 'manual', '{}', '2026-11-16 15:10:39.749859+00', NULL, '2026-11-16 15:10:39.787689+00', NULL, NULL, 1, 0, NULL, NULL, false, NULL, NULL, '56c84f0c09698ac1', 1, true, 110);
INSERT INTO ork.runs VALUES ('bgg978mg4n4p', 'branching', '2193666a33615679', 'running', 'manual', '{}', '2026-11-16 15:10:40.009784+00', NULL, '2026-11-16 15:10:40.044487+00', NULL, NULL, 1, 0, NULL, NULL, false, NULL, NULL, '56c84f0c09698ac1', 1, true, 115);
INSERT INTO ork.runs VALUES ('es9f84bh7dsn', 'single', '7c2352fac107bf39', 'pending', 'manual', '{}', '2026-11-16 15:10:40.243998+00', NULL, NULL, NULL, NULL, 1, 0, NULL, NULL, false, NULL, NULL, NULL, 0, true, 116);
INSERT INTO ork.runs VALUES ('vyw24jp4hr35', 'retrying', 'afb3e09b16cc4cf5', 'paused', 'manual', '{}', '2026-11-16 15:10:40.660054+00', NULL, '2026-11-16 15:10:40.688549+00', NULL, NULL, 1, 0, NULL, 'paused by root', false, NULL, NULL, NULL, 1, false, 121);
INSERT INTO ork.runs VALUES ('hvpzjkznyjcz', 'holding', '5c3c2a115aea7ead', 'paused', 'manual', '{}', '2026-11-16 15:10:37.623488+00', NULL, '2026-11-16 15:10:37.649271+00', NULL, NULL, 1, 0, NULL, 'paused by root', false, NULL, NULL, '56c84f0c09698ac1', 1, true, 123);
INSERT INTO ork.runs VALUES ('ymtfpprtmsj3', 'stubborn', '77476b39f67a29d2', 'running', 'manual', '{}', '2026-11-16 15:10:39.484589+00', NULL, '2026-11-16 15:10:39.527298+00', NULL, NULL, 1, 0, '2026-11-16 15:10:41.842585+00', 'cancelled by root', false, NULL, NULL, '56c84f0c09698ac1', 1, true, 125);
INSERT INTO ork.runs VALUES ('j3esr69gqvzq', 'holding', '5c3c2a115aea7ead', 'running', 'manual', '{}', '2026-11-16 15:10:37.437585+00', NULL, '2026-11-16 15:10:37.464196+00', NULL, NULL, 1, 0, '2026-11-16 15:10:43.04336+00', NULL, false, NULL, NULL, '56c84f0c09698ac1', 1, true, 126);
INSERT INTO ork.runs VALUES ('9cpv1659vh5g', 'sample', '8507e026a6078b44', 'pending', 'manual', '{"second":5}', '2026-11-16 15:10:43.403996+00', NULL, NULL, NULL, NULL, 1, 0, NULL, NULL, false, NULL, 'nightly', NULL, 0, true, 127);
INSERT INTO ork.runs VALUES ('y0t75bxpas3w', 'failing', 'e6a627f7795fd204', 'failed', 'manual', '{}', '2026-11-16 15:10:34.826514+00', NULL, '2026-11-16 15:10:34.863693+00', '2026-11-16 15:10:35.061102+00', 'task `broken` failed: ValueError: no such table: orders', 1, 0, NULL, NULL, false, NULL, NULL, NULL, 1, true, 128);

INSERT INTO ork.schedulers VALUES ('56c84f0c09698ac1', '@HOST@/@BOOT@/@NAMESPACE@/22314/73440', 'scheduler', '2026-11-16 15:10:34.408239+00', '2026-11-16 15:11:29.416612+00');

INSERT INTO ork.schema VALUES (9);

INSERT INTO ork.task_changes VALUES ('yzkcn57p4cv1', 19, '{0,1,2,0}', '{-1,-1,-1,-1}');
INSERT INTO ork.task_changes VALUES ('yzkcn57p4cv1', 20, '{0,1}', '{-1,-1}');
INSERT INTO ork.task_changes VALUES ('yzkcn57p4cv1', 21, '{1,2}', '{-1,-1}');
INSERT INTO ork.task_changes VALUES ('yzkcn57p4cv1', 22, '{2}', '{-1}');
INSERT INTO ork.task_changes VALUES ('zmdbrtzk9nee', 24, '{0,1,2,0}', '{-1,-1,-1,-1}');
INSERT INTO ork.task_changes VALUES ('zmdbrtzk9nee', 25, '{0}', '{-1}');
INSERT INTO ork.task_changes VALUES ('zmdbrtzk9nee', 26, '{0}', '{-1}');
INSERT INTO ork.task_changes VALUES ('zmdbrtzk9nee', 27, '{0,1,2}', '{-1,-1,-1}');
INSERT INTO ork.task_changes VALUES ('zmdbrtzk9nee', 28, '{2}', '{-1}');
INSERT INTO ork.task_changes VALUES ('y0t75bxpas3w', 30, '{0,1,2,0}', '{-1,-1,-1,-1}');
INSERT INTO ork.task_changes VALUES ('y0t75bxpas3w', 31, '{0}', '{-1}');
INSERT INTO ork.task_changes VALUES ('y0t75bxpas3w', 32, '{0}', '{-1}');
INSERT INTO ork.task_changes VALUES ('y0t75bxpas3w', 33, '{0,1,2}', '{-1,-1,-1}');
INSERT INTO ork.task_changes VALUES ('y0t75bxpas3w', 34, '{2}', '{-1}');
INSERT INTO ork.task_changes VALUES ('bq1dav2js0jt', 36, '{0,0}', '{-1,-1}');
INSERT INTO ork.task_changes VALUES ('bq1dav2js0jt', 37, '{0}', '{-1}');
INSERT INTO ork.task_changes VALUES ('zrtt54r9a5wf', 39, '{0,1,2,3,4,0,1,2,3}', '{-1,-1,-1,-1,-1,-1,-1,-1,-1}');
INSERT INTO ork.task_changes VALUES ('zrtt54r9a5wf', 40, '{3}', '{-1}');
INSERT INTO ork.task_changes VALUES ('zrtt54r9a5wf', 41, '{0}', '{-1}');
INSERT INTO ork.task_changes VALUES ('zrtt54r9a5wf', 42, '{1}', '{-1}');
INSERT INTO ork.task_changes VALUES ('zrtt54r9a5wf', 43, '{2}', '{-1}');
INSERT INTO ork.task_changes VALUES ('zrtt54r9a5wf', 45, '{4}', '{-1}');
INSERT INTO ork.task_changes VALUES ('zrtt54r9a5wf', 46, '{0}', '{-1}');
INSERT INTO ork.task_changes VALUES ('zrtt54r9a5wf', 47, '{1}', '{-1}');
INSERT INTO ork.task_changes VALUES ('zrtt54r9a5wf', 48, '{2}', '{-1}');
INSERT INTO ork.task_changes VALUES ('zrtt54r9a5wf', 49, '{3}', '{-1}');
INSERT INTO ork.task_changes VALUES ('8qzqww3wmt7t', 51, '{0,1,2,0}', '{-1,-1,-1,-1}');
INSERT INTO ork.task_changes VALUES ('z4tvdjxta20v', 51, '{0,1,2,0}', '{-1,-1,-1,-1}');
INSERT INTO ork.task_changes VALUES ('8qzqww3wmt7t', 52, '{0,1}', '{-1,-1}');
INSERT INTO ork.task_changes VALUES ('z4tvdjxta20v', 53, '{0,1}', '{-1,-1}');
INSERT INTO ork.task_changes VALUES ('8qzqww3wmt7t', 54, '{1,2}', '{-1,-1}');
INSERT INTO ork.task_changes VALUES ('8qzqww3wmt7t', 55, '{2}', '{-1}');
INSERT INTO ork.task_changes VALUES ('z4tvdjxta20v', 56, '{1,2}', '{-1,-1}');
INSERT INTO ork.task_changes VALUES ('z4tvdjxta20v', 57, '{2}', '{-1}');
INSERT INTO ork.task_changes VALUES ('jrjfr8va8npm', 59, '{0}', '{-1}');
INSERT INTO ork.task_changes VALUES ('gb4msazpy308', 61, '{0,1,2,3,4,0,1,2,3}', '{-1,-1,-1,-1,-1,-1,-1,-1,-1}');
INSERT INTO ork.task_changes VALUES ('gb4msazpy308', 62, '{0,3}', '{-1,-1}');
INSERT INTO ork.task_changes VALUES ('gb4msazpy308', 63, '{1}', '{-1}');
INSERT INTO ork.task_changes VALUES ('gb4msazpy308', 64, '{2}', '{-1}');
INSERT INTO ork.task_changes VALUES ('j3esr69gqvzq', 66, '{0,1,2,3,4,0,1,2,3}', '{-1,-1,-1,-1,-1,-1,-1,-1,-1}');
INSERT INTO ork.task_changes VALUES ('j3esr69gqvzq', 67, '{0}', '{-1}');
INSERT INTO ork.task_changes VALUES ('j3esr69gqvzq', 68, '{3,1}', '{-1,-1}');
INSERT INTO ork.task_changes VALUES ('j3esr69gqvzq', 69, '{2}', '{-1}');
INSERT INTO ork.task_changes VALUES ('hvpzjkznyjcz', 71, '{0,1,2,3,4,0,1,2,3}', '{-1,-1,-1,-1,-1,-1,-1,-1,-1}');
INSERT INTO ork.task_changes VALUES ('hvpzjkznyjcz', 72, '{3}', '{-1}');
INSERT INTO ork.task_changes VALUES ('hvpzjkznyjcz', 73, '{0}', '{-1}');
INSERT INTO ork.task_changes VALUES ('hvpzjkznyjcz', 74, '{1}', '{-1}');
INSERT INTO ork.task_changes VALUES ('hvpzjkznyjcz', 75, '{2}', '{-1}');
INSERT INTO ork.task_changes VALUES ('k1vh4g2xjej0', 77, '{0,1,0}', '{-1,-1,-1}');
INSERT INTO ork.task_changes VALUES ('k1vh4g2xjej0', 78, '{0}', '{-1}');
INSERT INTO ork.task_changes VALUES ('bhnhy7xkxcgj', 80, '{0,1,0,0,0,0,0,0,0,0,0,0,0}', '{-1,-1,0,1,2,3,4,5,6,7,0,1,2}');
INSERT INTO ork.task_changes VALUES ('bhnhy7xkxcgj', 81, '{0,0}', '{0,3}');
INSERT INTO ork.task_changes VALUES ('bhnhy7xkxcgj', 82, '{0,0}', '{2,4}');
INSERT INTO ork.task_changes VALUES ('bhnhy7xkxcgj', 83, '{0}', '{1}');
INSERT INTO ork.task_changes VALUES ('bhnhy7xkxcgj', 84, '{0,0}', '{4,5}');
INSERT INTO ork.task_changes VALUES ('bhnhy7xkxcgj', 85, '{0}', '{3}');
INSERT INTO ork.task_changes VALUES ('gsr8xmw6ygq6', 87, '{0,0}', '{-1,-1}');
INSERT INTO ork.task_changes VALUES ('bhnhy7xkxcgj', 88, '{0}', '{5}');
INSERT INTO ork.task_changes VALUES ('gsr8xmw6ygq6', 89, '{0}', '{-1}');
INSERT INTO ork.task_changes VALUES ('kq6meeba8nxp', 91, '{0,1,2,0}', '{-1,-1,-1,-1}');
INSERT INTO ork.task_changes VALUES ('kq6meeba8nxp', 92, '{1,0}', '{-1,-1}');
INSERT INTO ork.task_changes VALUES ('a89edc1hs1mm', 94, '{0,1,0}', '{-1,-1,-1}');
INSERT INTO ork.task_changes VALUES ('a89edc1hs1mm', 95, '{0}', '{-1}');
INSERT INTO ork.task_changes VALUES ('bjre4wnt644t', 97, '{0,1,0}', '{-1,-1,-1}');
INSERT INTO ork.task_changes VALUES ('bjre4wnt644t', 99, '{0}', '{-1}');
INSERT INTO ork.task_changes VALUES ('583gqa0rgwy8', 99, '{0,0}', '{-1,-1}');
INSERT INTO ork.task_changes VALUES ('583gqa0rgwy8', 100, '{0}', '{-1}');
INSERT INTO ork.task_changes VALUES ('w8mpdb03jcsy', 102, '{0,1,0}', '{-1,-1,-1}');
INSERT INTO ork.task_changes VALUES ('w8mpdb03jcsy', 103, '{0,1}', '{-1,-1}');
INSERT INTO ork.task_changes VALUES ('w8mpdb03jcsy', 104, '{1}', '{-1}');
INSERT INTO ork.task_changes VALUES ('b1twte5h2f5g', 109, '{0,0}', '{-1,-1}');
INSERT INTO ork.task_changes VALUES ('b1twte5h2f5g', 110, '{0}', '{-1}');
INSERT INTO ork.task_changes VALUES ('bgg978mg4n4p', 112, '{0,1,2,3,0}', '{-1,-1,-1,-1,-1}');
INSERT INTO ork.task_changes VALUES ('bgg978mg4n4p', 113, '{1,0,2}', '{-1,-1,-1}');
INSERT INTO ork.task_changes VALUES ('bgg978mg4n4p', 114, '{2,3}', '{-1,-1}');
INSERT INTO ork.task_changes VALUES ('bgg978mg4n4p', 115, '{3}', '{-1}');
INSERT INTO ork.task_changes VALUES ('vyw24jp4hr35', 118, '{0,0}', '{-1,-1}');
INSERT INTO ork.task_changes VALUES ('vyw24jp4hr35', 119, '{0}', '{-1}');
INSERT INTO ork.task_changes VALUES ('ymtfpprtmsj3', 106, '{0,0}', '{-1,-1}');
INSERT INTO ork.task_changes VALUES ('ymtfpprtmsj3', 107, '{0}', '{-1}');

INSERT INTO ork.tasks VALUES ('y0t75bxpas3w', 0, -1, 'broken', 'failed', 'python', 2, 0, NULL, NULL, NULL, '{"kind":"exception","message":"ValueError: no such table: orders","detail":{"type":"ValueError","message":"no such table: orders","frames":[{"file":"tasks.py","line":39,"function":"fail","source":"    raise ValueError(\"no such table: orders\")","caret":[4,45]}],"inputs":{}}}', 1, '2026-11-16 15:10:34.989631+00', '2026-11-16 15:10:35.0154+00', '2026-11-16 15:10:35.03229+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('yzkcn57p4cv1', 0, -1, 'extract', 'success', 'python', 1, 0, NULL, NULL, NULL, NULL, 0, '2026-11-16 15:10:34.408239+00', '2026-11-16 15:10:34.507393+00', '2026-11-16 15:10:34.538207+00', NULL, NULL, NULL, '{"rows":12,"attempt":1}', NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('y0t75bxpas3w', 1, -1, 'after', 'skipped', 'python', 0, 0, 'broken failed', 'broken', -1, NULL, NULL, NULL, NULL, '2026-11-16 15:10:35.032766+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('yzkcn57p4cv1', 1, -1, 'transform', 'success', 'python', 1, 0, NULL, NULL, NULL, NULL, 0, '2026-11-16 15:10:34.538625+00', '2026-11-16 15:10:34.556547+00', '2026-11-16 15:10:34.583154+00', NULL, NULL, NULL, '14', NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('8qzqww3wmt7t', 0, -1, 'extract', 'success', 'python', 1, 0, NULL, NULL, NULL, NULL, 0, '2026-11-16 15:10:36.724561+00', '2026-11-16 15:10:36.74643+00', '2026-11-16 15:10:36.769221+00', NULL, NULL, NULL, '{"rows":12,"attempt":1}', NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('yzkcn57p4cv1', 2, -1, 'load', 'success', 'process', 1, 0, NULL, NULL, NULL, NULL, 0, '2026-11-16 15:10:34.583693+00', '2026-11-16 15:10:34.594136+00', '2026-11-16 15:10:34.604845+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('y0t75bxpas3w', 2, -1, 'tidy', 'success', 'python', 1, 0, NULL, NULL, NULL, NULL, 0, '2026-11-16 15:10:35.032766+00', '2026-11-16 15:10:35.041133+00', '2026-11-16 15:10:35.060601+00', NULL, NULL, NULL, '{"rows":12,"attempt":1}', NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('w8mpdb03jcsy', 0, -1, 'big', 'success', 'python', 1, 0, NULL, NULL, NULL, NULL, 0, '2026-11-16 15:10:39.305093+00', '2026-11-16 15:10:39.320542+00', '2026-11-16 15:10:39.359343+00', NULL, 'runs/w8mpdb03jcsy/big.0.1.output.json', 103001, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('zmdbrtzk9nee', 0, -1, 'broken', 'failed', 'python', 2, 0, NULL, NULL, NULL, '{"kind":"exception","message":"ValueError: no such table: orders","detail":{"type":"ValueError","message":"no such table: orders","frames":[{"file":"tasks.py","line":39,"function":"fail","source":"    raise ValueError(\"no such table: orders\")","caret":[4,45]}],"inputs":{}}}', 1, '2026-11-16 15:10:34.750827+00', '2026-11-16 15:10:34.760786+00', '2026-11-16 15:10:34.772786+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('zmdbrtzk9nee', 1, -1, 'after', 'skipped', 'python', 0, 0, 'broken failed', 'broken', -1, NULL, NULL, NULL, NULL, '2026-11-16 15:10:34.773375+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('bq1dav2js0jt', 0, -1, 'look_up', 'success', 'python', 1, 0, NULL, NULL, NULL, NULL, 0, '2026-11-16 15:10:35.117781+00', '2026-11-16 15:10:35.130108+00', '2026-11-16 15:10:35.134761+00', NULL, NULL, NULL, '{"rows":12,"attempt":1}', NULL, NULL, 'f3716a564d41b855d2c57bc0747343e7319c33ed8283868c8fb184be2ad73394', DEFAULT);
INSERT INTO ork.tasks VALUES ('zmdbrtzk9nee', 2, -1, 'tidy', 'success', 'python', 1, 0, NULL, NULL, NULL, NULL, 0, '2026-11-16 15:10:34.773375+00', '2026-11-16 15:10:34.787313+00', '2026-11-16 15:10:34.799689+00', NULL, NULL, NULL, '{"rows":12,"attempt":1}', NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('zrtt54r9a5wf', 4, -1, 'after', 'cancelled', 'python', 0, 0, 'cancelled by root', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:35.527701+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('zrtt54r9a5wf', 0, -1, 'forked', 'cancelled', 'python', 1, 0, 'cancelled by root', NULL, NULL, '{"kind":"cancelled","message":"cancelled by root","detail":null}', NULL, '2026-11-16 15:10:35.314637+00', '2026-11-16 15:10:35.32639+00', '2026-11-16 15:10:35.546925+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('8qzqww3wmt7t', 1, -1, 'transform', 'success', 'python', 1, 0, NULL, NULL, NULL, NULL, 0, '2026-11-16 15:10:36.769785+00', '2026-11-16 15:10:36.780819+00', '2026-11-16 15:10:36.806938+00', NULL, NULL, NULL, '14', NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('zrtt54r9a5wf', 1, -1, 'interpreter', 'cancelled', 'python', 1, 0, 'cancelled by root', NULL, NULL, '{"kind":"cancelled","message":"cancelled by root","detail":null}', NULL, '2026-11-16 15:10:35.314637+00', '2026-11-16 15:10:35.345129+00', '2026-11-16 15:10:35.566561+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('8qzqww3wmt7t', 2, -1, 'load', 'success', 'process', 1, 0, NULL, NULL, NULL, NULL, 0, '2026-11-16 15:10:36.807315+00', '2026-11-16 15:10:36.823283+00', '2026-11-16 15:10:36.832448+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('zrtt54r9a5wf', 2, -1, 'shared', 'cancelled', 'python', 1, 0, 'cancelled by root', NULL, NULL, '{"kind":"cancelled","message":"cancelled by root","detail":null}', NULL, '2026-11-16 15:10:35.314637+00', '2026-11-16 15:10:35.327039+00', '2026-11-16 15:10:35.57594+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('zrtt54r9a5wf', 3, -1, 'command', 'cancelled', 'process', 1, 0, 'cancelled by root', NULL, NULL, '{"kind":"cancelled","message":"cancelled by root","detail":null}', NULL, '2026-11-16 15:10:35.314637+00', '2026-11-16 15:10:35.32231+00', '2026-11-16 15:10:35.581317+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('hvpzjkznyjcz', 0, -1, 'forked', 'running', 'python', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:37.649271+00', '2026-11-16 15:10:37.666499+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('z4tvdjxta20v', 0, -1, 'extract', 'success', 'python', 1, 0, NULL, NULL, NULL, NULL, 0, '2026-11-16 15:10:36.724561+00', '2026-11-16 15:10:36.744389+00', '2026-11-16 15:10:36.793872+00', NULL, NULL, NULL, '{"rows":12,"attempt":1}', NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('hvpzjkznyjcz', 1, -1, 'interpreter', 'running', 'python', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:37.649271+00', '2026-11-16 15:10:37.696508+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('z4tvdjxta20v', 1, -1, 'transform', 'success', 'python', 1, 0, NULL, NULL, NULL, NULL, 0, '2026-11-16 15:10:36.797713+00', '2026-11-16 15:10:36.803541+00', '2026-11-16 15:10:36.836864+00', NULL, NULL, NULL, '14', NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('z4tvdjxta20v', 2, -1, 'load', 'success', 'process', 1, 0, NULL, NULL, NULL, NULL, 0, '2026-11-16 15:10:36.83836+00', '2026-11-16 15:10:36.851183+00', '2026-11-16 15:10:36.861594+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('jrjfr8va8npm', 0, -1, 'look_up', 'success', 'python', 0, 0, 'cached: the same as in run bq1dav2js0jt', NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:36.997154+00', '2026-11-16 15:10:36.997154+00', NULL, NULL, NULL, '{"rows":12,"attempt":1}', NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('gb4msazpy308', 4, -1, 'after', 'pending', 'python', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('gb4msazpy308', 0, -1, 'forked', 'running', 'python', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:37.220518+00', '2026-11-16 15:10:37.230254+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('gb4msazpy308', 3, -1, 'command', 'running', 'process', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:37.220518+00', '2026-11-16 15:10:37.232837+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('gb4msazpy308', 1, -1, 'interpreter', 'running', 'python', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:37.220518+00', '2026-11-16 15:10:37.251476+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('gb4msazpy308', 2, -1, 'shared', 'running', 'python', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:37.220518+00', '2026-11-16 15:10:37.237061+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('j3esr69gqvzq', 4, -1, 'after', 'pending', 'python', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('j3esr69gqvzq', 0, -1, 'forked', 'running', 'python', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:37.464196+00', '2026-11-16 15:10:37.476224+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('j3esr69gqvzq', 1, -1, 'interpreter', 'running', 'python', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:37.464196+00', '2026-11-16 15:10:37.49565+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('j3esr69gqvzq', 3, -1, 'command', 'running', 'process', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:37.464196+00', '2026-11-16 15:10:37.481714+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('j3esr69gqvzq', 2, -1, 'shared', 'running', 'python', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:37.464196+00', '2026-11-16 15:10:37.480024+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('hvpzjkznyjcz', 4, -1, 'after', 'pending', 'python', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('hvpzjkznyjcz', 3, -1, 'command', 'running', 'process', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:37.649271+00', '2026-11-16 15:10:37.669896+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('hvpzjkznyjcz', 2, -1, 'shared', 'running', 'python', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:37.649271+00', '2026-11-16 15:10:37.665021+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('k1vh4g2xjej0', 1, -1, 'after', 'pending', 'python', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('k1vh4g2xjej0', 0, -1, 'work', 'running', 'python', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:37.871275+00', '2026-11-16 15:10:37.881249+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('bhnhy7xkxcgj', 0, -1, 'each', 'running', 'python', 0, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:38.079304+00', '2026-11-16 15:10:38.079304+00', NULL, NULL, NULL, NULL, NULL, 8, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('bhnhy7xkxcgj', 1, -1, 'total', 'pending', 'python', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('bhnhy7xkxcgj', 0, 6, 'each', 'pending', 'python', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '6', NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('bhnhy7xkxcgj', 0, 7, 'each', 'pending', 'python', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '7', NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('bhnhy7xkxcgj', 0, 0, 'each', 'success', 'python', 1, 0, NULL, NULL, NULL, NULL, 0, '2026-11-16 15:10:38.079304+00', '2026-11-16 15:10:38.090783+00', '2026-11-16 15:10:38.151295+00', NULL, NULL, NULL, '0', NULL, '0', NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('bhnhy7xkxcgj', 0, 2, 'each', 'success', 'python', 1, 0, NULL, NULL, NULL, NULL, 0, '2026-11-16 15:10:38.079304+00', '2026-11-16 15:10:38.094769+00', '2026-11-16 15:10:38.172571+00', NULL, NULL, NULL, '20', NULL, '2', NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('bhnhy7xkxcgj', 0, 1, 'each', 'running', 'python', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:38.079304+00', '2026-11-16 15:10:38.09517+00', NULL, NULL, NULL, NULL, NULL, NULL, '1', NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('bhnhy7xkxcgj', 0, 4, 'each', 'success', 'python', 1, 0, NULL, NULL, NULL, NULL, 0, '2026-11-16 15:10:38.174766+00', '2026-11-16 15:10:38.190241+00', '2026-11-16 15:10:38.228442+00', NULL, NULL, NULL, '40', NULL, '4', NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('bhnhy7xkxcgj', 0, 3, 'each', 'running', 'python', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:38.153887+00', '2026-11-16 15:10:38.180592+00', NULL, NULL, NULL, NULL, NULL, NULL, '3', NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('bhnhy7xkxcgj', 0, 5, 'each', 'running', 'python', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:38.229003+00', '2026-11-16 15:10:38.235163+00', NULL, NULL, NULL, NULL, NULL, NULL, '5', NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('gsr8xmw6ygq6', 0, -1, 'flaky', 'pending', 'python', 1, 0, NULL, NULL, NULL, '{"kind":"exception","message":"ValueError: not yet","detail":{"type":"ValueError","message":"not yet","frames":[{"file":"tasks.py","line":45,"function":"fail_once","source":"        raise ValueError(\"not yet\")","caret":[8,35]}],"inputs":{}}}', 1, '2026-11-16 15:10:38.339276+00', '2026-11-16 15:10:38.355584+00', '2026-11-16 15:10:38.389883+00', '2026-11-16 15:11:08.39039+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('kq6meeba8nxp', 2, -1, 'publish', 'pending', 'python', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('kq6meeba8nxp', 1, -1, 'release', 'running', 'approval', 0, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:38.586554+00', '2026-11-16 15:10:38.586554+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('kq6meeba8nxp', 0, -1, 'build', 'success', 'python', 1, 0, NULL, NULL, NULL, NULL, 0, '2026-11-16 15:10:38.570273+00', '2026-11-16 15:10:38.58157+00', '2026-11-16 15:10:38.586258+00', NULL, NULL, NULL, '{"rows":12,"attempt":1}', NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('a89edc1hs1mm', 1, -1, 'after', 'pending', 'python', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('a89edc1hs1mm', 0, -1, 'submit', 'running', 'python', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:38.81103+00', '2026-11-16 15:10:38.825745+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('bjre4wnt644t', 1, -1, 'after', 'pending', 'python', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('bjre4wnt644t', 0, -1, 'child', 'running', 'workflow', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:39.066821+00', '2026-11-16 15:10:39.087723+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('583gqa0rgwy8', 0, -1, 'work', 'running', 'python', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:39.087723+00', '2026-11-16 15:10:39.096811+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('ymtfpprtmsj3', 0, -1, 'work', 'running', 'python', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:39.527298+00', '2026-11-16 15:10:39.543159+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('w8mpdb03jcsy', 1, -1, 'count', 'running', 'python', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:39.359883+00', '2026-11-16 15:10:39.368293+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('b1twte5h2f5g', 0, -1, 'work', 'running', 'python', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:39.787689+00', '2026-11-16 15:10:39.804707+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('bgg978mg4n4p', 1, -1, 'many', 'skipped', 'python', 0, 0, 'when tasks.look.output.rows gt 100: it is 12', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:40.087499+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('bgg978mg4n4p', 0, -1, 'look', 'success', 'python', 1, 0, NULL, NULL, NULL, NULL, 0, '2026-11-16 15:10:40.044487+00', '2026-11-16 15:10:40.063071+00', '2026-11-16 15:10:40.087008+00', NULL, NULL, NULL, '{"rows":12,"attempt":1}', NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('bgg978mg4n4p', 2, -1, 'few', 'success', 'python', 1, 0, NULL, NULL, NULL, NULL, 0, '2026-11-16 15:10:40.087499+00', '2026-11-16 15:10:40.095578+00', '2026-11-16 15:10:40.115427+00', NULL, NULL, NULL, '{"rows":12,"attempt":1}', NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('bgg978mg4n4p', 3, -1, 'after', 'running', 'python', 1, 0, NULL, NULL, NULL, NULL, NULL, '2026-11-16 15:10:40.115905+00', '2026-11-16 15:10:40.120924+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO ork.tasks VALUES ('vyw24jp4hr35', 0, -1, 'flaky', 'pending', 'python', 1, 0, NULL, NULL, NULL, '{"kind":"exception","message":"ValueError: not yet","detail":{"type":"ValueError","message":"not yet","frames":[{"file":"tasks.py","line":45,"function":"fail_once","source":"        raise ValueError(\"not yet\")","caret":[8,35]}],"inputs":{}}}', 1, '2026-11-16 15:10:40.688549+00', '2026-11-16 15:10:40.699784+00', '2026-11-16 15:10:40.727993+00', '2026-11-16 15:11:10.728478+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);

INSERT INTO ork.versions VALUES ('de53f8bf3b41ae00', 'asking', '@ROOT@', '@ROOT@/asking.yaml', '{"name":"asking","tasks":[{"name":"build","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}}},{"name":"release","executor":"approval","action":{"approval":{"message":"Publish?"}},"depends_on":["build"],"timeout":315360000.0},{"name":"publish","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}},"depends_on":["release"]}]}', '2026-11-16 15:10:34.054647+00', 2);
INSERT INTO ork.versions VALUES ('2193666a33615679', 'branching', '@ROOT@', '@ROOT@/branching.yaml', '{"name":"branching","tasks":[{"name":"look","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}}},{"name":"many","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}},"depends_on":["look"],"when":[[["tasks","look","output","rows"],"gt",100]]},{"name":"few","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}},"depends_on":["look"],"when":[[["tasks","look","output","rows"],"le",100]]},{"name":"after","executor":"python","action":{"python":{"file":"tasks.py","function":"hold"}},"depends_on":["many","few"],"retries":2,"retry_delay":0.2,"run_if":"any_success"}]}', '2026-11-16 15:10:34.054647+00', 3);
INSERT INTO ork.versions VALUES ('6db09dc085e56e89', 'cached', '@ROOT@', '@ROOT@/cached.yaml', '{"name":"cached","tasks":[{"name":"look_up","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}},"cache":315360000.0}]}', '2026-11-16 15:10:34.054647+00', 4);
INSERT INTO ork.versions VALUES ('1e888030f08c32f9', 'deferring', '@ROOT@', '@ROOT@/deferring.yaml', '{"name":"deferring","tasks":[{"name":"submit","executor":"python","action":{"python":{"file":"tasks.py","function":"submit"}},"retries":2,"retry_delay":0.2},{"name":"after","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}},"depends_on":["submit"]}]}', '2026-11-16 15:10:34.054647+00', 5);
INSERT INTO ork.versions VALUES ('e6a627f7795fd204', 'failing', '@ROOT@', '@ROOT@/failing.yaml', '{"name":"failing","tasks":[{"name":"broken","executor":"python","action":{"python":{"file":"tasks.py","function":"fail"}},"retries":1,"retry_delay":0.1},{"name":"after","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}},"depends_on":["broken"]},{"name":"tidy","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}},"depends_on":["broken"],"run_if":"all_done"}]}', '2026-11-16 15:10:34.054647+00', 6);
INSERT INTO ork.versions VALUES ('faa1545ba80534ee', 'fan', '@ROOT@', '@ROOT@/fan.yaml', '{"name":"fan","tasks":[{"name":"each","executor":"python","action":{"python":{"file":"tasks.py","function":"hold_odd"}},"retries":2,"retry_delay":0.2,"foreach":{"const":[0,1,2,3,4,5,6,7]},"concurrency":3},{"name":"total","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}},"depends_on":["each"]}]}', '2026-11-16 15:10:34.054647+00', 7);
INSERT INTO ork.versions VALUES ('5c3c2a115aea7ead', 'holding', '@ROOT@', '@ROOT@/holding.yaml', '{"name":"holding","tasks":[{"name":"forked","executor":"python","action":{"python":{"file":"tasks.py","function":"hold"}},"retries":2,"retry_delay":0.2},{"name":"interpreter","executor":"python","action":{"python":{"file":"tasks.py","function":"hold"}},"retries":2,"retry_delay":0.2,"isolation":"interpreter"},{"name":"shared","executor":"python","action":{"python":{"file":"tasks.py","function":"hold"}},"retries":2,"retry_delay":0.2,"isolation":"shared"},{"name":"command","executor":"process","action":{"command":[{"const":"sh"},{"const":"-c"},{"const":"echo \"start $ORK_RUN_ID $ORK_TASK_NAME $ORK_ATTEMPT\" >> ledger.txt; until [ -e release ]; do sleep 0.05; done"}]},"retries":2,"retry_delay":0.2},{"name":"after","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}},"depends_on":["forked","interpreter","shared","command"],"retries":2,"retry_delay":0.2}]}', '2026-11-16 15:10:34.054647+00', 8);
INSERT INTO ork.versions VALUES ('3dbbeb346de0e114', 'large', '@ROOT@', '@ROOT@/large.yaml', '{"name":"large","tasks":[{"name":"big","executor":"python","action":{"python":{"file":"tasks.py","function":"big"}}},{"name":"count","executor":"python","action":{"python":{"file":"tasks.py","function":"count"}},"depends_on":["big"],"inputs":[["big",{"ref":["tasks","big","output"]}]],"retries":2,"retry_delay":0.2}]}', '2026-11-16 15:10:34.054647+00', 9);
INSERT INTO ork.versions VALUES ('c96cd2eb3d7a7306', 'late', '@ROOT@', '@ROOT@/late.yaml', '{"name":"late","tasks":[{"name":"work","executor":"python","action":{"python":{"file":"tasks.py","function":"hold_until_late"}}},{"name":"after","executor":"python","action":{"python":{"file":"tasks.py","function":"add"}},"depends_on":["work"],"inputs":[["first",{"ref":["tasks","work","output"]}],["second",{"const":"!"}]]}]}', '2026-11-16 15:10:34.054647+00', 10);
INSERT INTO ork.versions VALUES ('16d0777a8faf5440', 'parent', '@ROOT@', '@ROOT@/parent.yaml', '{"name":"parent","tasks":[{"name":"child","executor":"workflow","action":{"workflow":{"name":"sheltered"}},"inputs":[["label",{"const":"one"}]]},{"name":"after","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}},"depends_on":["child"]}]}', '2026-11-16 15:10:34.054647+00', 11);
INSERT INTO ork.versions VALUES ('9355673ef4b89de5', 'sheltered', '@ROOT@', '@ROOT@/sheltered.yaml', '{"name":"sheltered","params":[{"name":"label","type":"str"}],"tasks":[{"name":"work","executor":"python","action":{"python":{"file":"tasks.py","function":"hold"}},"retries":2,"retry_delay":0.2}]}', '2026-11-16 15:10:34.054647+00', 12);
INSERT INTO ork.versions VALUES ('afb3e09b16cc4cf5', 'retrying', '@ROOT@', '@ROOT@/retrying.yaml', '{"name":"retrying","tasks":[{"name":"flaky","executor":"python","action":{"python":{"file":"tasks.py","function":"fail_once"}},"retries":3,"retry_delay":30.0}]}', '2026-11-16 15:10:34.054647+00', 13);
INSERT INTO ork.versions VALUES ('8507e026a6078b44', 'sample', '@ROOT@', '@ROOT@/sample.yaml', '{"name":"sample","params":[{"name":"second","type":"int","required":false,"default":2}],"schedule":{"cron":"0 2 * * *","timezone":"Europe/Prague","enabled":false},"tasks":[{"name":"extract","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}}},{"name":"transform","executor":"python","action":{"python":{"file":"tasks.py","function":"add"}},"depends_on":["extract"],"inputs":[["first",{"ref":["tasks","extract","output","rows"]}]]},{"name":"load","executor":"process","action":{"command":[{"const":"sh"},{"const":"-c"},{"const":"echo \"start $ORK_RUN_ID $ORK_TASK_NAME $ORK_ATTEMPT\" >> ledger.txt"}]},"depends_on":["transform"]}]}', '2026-11-16 15:10:34.054647+00', 14);
INSERT INTO ork.versions VALUES ('7c2352fac107bf39', 'single', '@ROOT@', '@ROOT@/single.yaml', '{"name":"single","max_active_runs":1,"tasks":[{"name":"work","executor":"python","action":{"python":{"file":"tasks.py","function":"hold"}},"retries":2,"retry_delay":0.2,"pool":"narrow"}]}', '2026-11-16 15:10:34.054647+00', 16);
INSERT INTO ork.versions VALUES ('77476b39f67a29d2', 'stubborn', '@ROOT@', '@ROOT@/stubborn.yaml', '{"name":"stubborn","tasks":[{"name":"work","executor":"python","action":{"python":{"file":"tasks.py","function":"stubborn"}},"retries":2,"retry_delay":0.2}]}', '2026-11-16 15:10:34.054647+00', 17);

INSERT INTO ork.workflows VALUES ('asking', 'de53f8bf3b41ae00', true, '2026-11-16 15:10:34.054647+00', '@ROOT@/asking.yaml', NULL, NULL, false, NULL);
INSERT INTO ork.workflows VALUES ('branching', '2193666a33615679', true, '2026-11-16 15:10:34.054647+00', '@ROOT@/branching.yaml', NULL, NULL, false, NULL);
INSERT INTO ork.workflows VALUES ('cached', '6db09dc085e56e89', true, '2026-11-16 15:10:34.054647+00', '@ROOT@/cached.yaml', NULL, NULL, false, NULL);
INSERT INTO ork.workflows VALUES ('deferring', '1e888030f08c32f9', true, '2026-11-16 15:10:34.054647+00', '@ROOT@/deferring.yaml', NULL, NULL, false, NULL);
INSERT INTO ork.workflows VALUES ('failing', 'e6a627f7795fd204', true, '2026-11-16 15:10:34.054647+00', '@ROOT@/failing.yaml', NULL, NULL, false, NULL);
INSERT INTO ork.workflows VALUES ('fan', 'faa1545ba80534ee', true, '2026-11-16 15:10:34.054647+00', '@ROOT@/fan.yaml', NULL, NULL, false, NULL);
INSERT INTO ork.workflows VALUES ('holding', '5c3c2a115aea7ead', true, '2026-11-16 15:10:34.054647+00', '@ROOT@/holding.yaml', NULL, NULL, false, NULL);
INSERT INTO ork.workflows VALUES ('large', '3dbbeb346de0e114', true, '2026-11-16 15:10:34.054647+00', '@ROOT@/large.yaml', NULL, NULL, false, NULL);
INSERT INTO ork.workflows VALUES ('late', 'c96cd2eb3d7a7306', true, '2026-11-16 15:10:34.054647+00', '@ROOT@/late.yaml', NULL, NULL, false, NULL);
INSERT INTO ork.workflows VALUES ('parent', '16d0777a8faf5440', true, '2026-11-16 15:10:34.054647+00', '@ROOT@/parent.yaml', NULL, NULL, false, NULL);
INSERT INTO ork.workflows VALUES ('retrying', 'afb3e09b16cc4cf5', true, '2026-11-16 15:10:34.054647+00', '@ROOT@/retrying.yaml', NULL, NULL, false, NULL);
INSERT INTO ork.workflows VALUES ('sample', '8507e026a6078b44', true, '2026-11-16 15:10:34.054647+00', '@ROOT@/sample.yaml', '["0 2 * * *","Europe/Prague","none",false]', NULL, false, NULL);
INSERT INTO ork.workflows VALUES ('sheltered', '9355673ef4b89de5', true, '2026-11-16 15:10:34.054647+00', '@ROOT@/sheltered.yaml', NULL, NULL, false, NULL);
INSERT INTO ork.workflows VALUES ('single', '7c2352fac107bf39', true, '2026-11-16 15:10:34.054647+00', '@ROOT@/single.yaml', NULL, 1, false, NULL);
INSERT INTO ork.workflows VALUES ('stubborn', '77476b39f67a29d2', true, '2026-11-16 15:10:34.054647+00', '@ROOT@/stubborn.yaml', NULL, NULL, false, NULL);

SELECT pg_catalog.setval('ork.alerts_id_seq', 4, true);

SELECT pg_catalog.setval('ork.audit_id_seq', 22, true);

SELECT pg_catalog.setval('ork.changes', 128, true);

SELECT pg_catalog.setval('ork.commands_id_seq', 6, true);

ALTER TABLE ONLY ork.alerts
    ADD CONSTRAINT alerts_pkey PRIMARY KEY (id);

ALTER TABLE ONLY ork.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (run_id, ordinal, idx, number);

ALTER TABLE ONLY ork.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);

ALTER TABLE ONLY ork.buckets
    ADD CONSTRAINT buckets_pkey PRIMARY KEY (name);

ALTER TABLE ONLY ork.commands
    ADD CONSTRAINT commands_pkey PRIMARY KEY (id);

ALTER TABLE ONLY ork.leftovers
    ADD CONSTRAINT leftovers_pkey PRIMARY KEY (run_id);

ALTER TABLE ONLY ork.limits
    ADD CONSTRAINT limits_pkey PRIMARY KEY (name);

ALTER TABLE ONLY ork.locations
    ADD CONSTRAINT locations_pkey PRIMARY KEY (name);

ALTER TABLE ONLY ork.meta
    ADD CONSTRAINT meta_pkey PRIMARY KEY (name);

ALTER TABLE ONLY ork.pulse
    ADD CONSTRAINT pulse_pkey PRIMARY KEY (slot);

ALTER TABLE ONLY ork.rates
    ADD CONSTRAINT rates_pkey PRIMARY KEY (name);

ALTER TABLE ONLY ork.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (id);

ALTER TABLE ONLY ork.schedulers
    ADD CONSTRAINT schedulers_pkey PRIMARY KEY (id);

ALTER TABLE ONLY ork.task_changes
    ADD CONSTRAINT task_changes_pkey PRIMARY KEY (run_id, changed);

ALTER TABLE ONLY ork.tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (run_id, ordinal, idx);

ALTER TABLE ONLY ork.tokens
    ADD CONSTRAINT tokens_digest_key UNIQUE (digest);

ALTER TABLE ONLY ork.tokens
    ADD CONSTRAINT tokens_pkey PRIMARY KEY (id);

ALTER TABLE ONLY ork.versions
    ADD CONSTRAINT versions_pkey PRIMARY KEY (id);

ALTER TABLE ONLY ork.workflows
    ADD CONSTRAINT workflows_pkey PRIMARY KEY (name);

CREATE INDEX alerts_due ON ork.alerts USING btree (due_at, id) WHERE (due_at IS NOT NULL);

CREATE INDEX alerts_of_run ON ork.alerts USING btree (run_id, id) WHERE (run_id IS NOT NULL);

CREATE INDEX alerts_told ON ork.alerts USING btree (raised_at) WHERE ((run_id IS NULL) AND (due_at IS NULL));

CREATE INDEX alerts_unsent ON ork.alerts USING btree (id) WHERE (error IS NOT NULL);

CREATE INDEX attempts_active ON ork.attempts USING btree (run_id, executor, pool, is_waiting) WHERE active;

CREATE INDEX commands_of_run ON ork.commands USING btree (run_id);

CREATE INDEX commands_waiting ON ork.commands USING btree (run_id, id) WHERE (done_at IS NULL);

CREATE INDEX runs_by_status ON ork.runs USING btree (status, created_at, id);

CREATE INDEX runs_by_workflow ON ork.runs USING btree (workflow, status, created_at, id);

CREATE INDEX runs_changed ON ork.runs USING btree (changed);

CREATE UNIQUE INDEX runs_key ON ork.runs USING btree (workflow, key) WHERE (key IS NOT NULL);

CREATE INDEX runs_occupying ON ork.runs USING btree (workflow) WHERE ((status = ANY (ARRAY['running'::text, 'paused'::text])) OR ((status = 'pending'::text) AND (owner IS NOT NULL)));

CREATE INDEX runs_owned ON ork.runs USING btree (owner) WHERE (owner IS NOT NULL);

CREATE INDEX runs_queued ON ork.runs USING btree (workflow) WHERE (attention AND (owner IS NULL) AND (status = 'pending'::text));

CREATE UNIQUE INDEX runs_slot ON ork.runs USING btree (workflow, scheduled_for) WHERE ((scheduled_for IS NOT NULL) AND (trigger = ANY (ARRAY['schedule'::text, 'backfill'::text])));

CREATE INDEX runs_waiting ON ork.runs USING btree (priority DESC, created_at, id) WHERE (attention AND (owner IS NULL));

CREATE INDEX tasks_cached ON ork.tasks USING btree (cache_key, cached_at) WHERE (cached_at IS NOT NULL);

CREATE INDEX versions_of_workflow ON ork.versions USING btree (workflow, saved DESC);

CREATE INDEX workflows_due ON ork.workflows USING btree (next_fire) WHERE fires;
