-- What a step of a scheduler decided, written in one request: all of it, or nothing.

-- Which launches fit, in the order given. A wish that is turned away takes nothing from the others. Whoever admits holds
-- the locks of limits and buckets until its commit, so the next one counts it too.
-- _limits: the names of all limits that some attempt counts against; _rates: of each attempt its task's own rate, if any,
-- and NULL altogether where no attempt has one or is in a pool.
CREATE FUNCTION ork.admit(
    _attempts ork.attempt_row[], _limits text[], _rates ork.start_rate[], _moment timestamptz,
    OUT admitted integer[], OUT exhausted text[], OUT again_in double precision
) LANGUAGE plpgsql AS $$
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
                exhausted := exhausted || _name;
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
    IF true = ANY (_drawn) THEN
        UPDATE ork.buckets AS b SET tokens = n.tokens, at = coalesce(_moment, clock_timestamp())
        FROM unnest(_buckets, _tokens, _drawn) AS n (name, tokens, drawn)
        WHERE b.name = n.name AND n.drawn;
    END IF;
END $$;

CREATE FUNCTION ork.write_tasks(_tasks ork.task_row[], _changed bigint) RETURNS void LANGUAGE plpgsql AS $$
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

CREATE FUNCTION ork.write_attempts(_attempts ork.attempt_row[]) RETURNS void LANGUAGE plpgsql AS $$
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

-- Runs whose fence is shut (fenced), or that would end without knowing of a cancel that stands (overruled; _unaware are
-- those that could), are named, and then nothing at all is written: the caller comes again without them.
-- A commit that comes to nothing tells nobody.
CREATE FUNCTION ork.commit_step(
    _scheduler text, _ids text[], _epochs bigint[], _unaware text[], _runs ork.run_change[], _touched ork.run_touch[],
    _tasks ork.task_row[], _attempts ork.attempt_row[], _commands bigint[], _command_runs text[],
    _wished_tasks ork.task_row[], _wished_attempts ork.attempt_row[], _limits text[], _rates ork.start_rate[],
    _alerts ork.alert_row[], _succeeded text[], _now timestamptz, _moment timestamptz, _slot integer, _handle text,
    OUT fenced text[], OUT overruled text[], OUT admitted integer[], OUT exhausted text[], OUT again_in double precision,
    OUT told boolean
) LANGUAGE plpgsql AS $$
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
    IF _wished_attempts IS NOT NULL THEN
        SELECT * INTO admitted, exhausted, again_in FROM ork.admit(_wished_attempts, _limits, _rates, _moment);
        IF cardinality(admitted) < cardinality(_wished_attempts) THEN
            _wished_tasks := ARRAY (SELECT _wished_tasks[place] FROM unnest(admitted) AS place);
            _wished_attempts := ARRAY (SELECT _wished_attempts[place] FROM unnest(admitted) AS place);
        END IF;
        IF admitted IS NOT NULL THEN
            PERFORM ork.write_tasks(_wished_tasks, _changed);
            PERFORM ork.write_attempts(_wished_attempts);
            _launched := ARRAY (SELECT DISTINCT run_id FROM unnest(_wished_attempts));
        ELSIF _runs IS NULL AND NOT EXISTS (SELECT 1 FROM unnest(_touched) WHERE NOT only_wishes) THEN
            RETURN;
        END IF;
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

-- The run before it is the newest earlier one that came to an end of its own: one look at the index for each end.
CREATE FUNCTION ork.add_recoveries(_succeeded text[], _now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
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
