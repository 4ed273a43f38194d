-- Attempts that a platform starts as one unit: which unit, the attempt's place in it, and how many of the unit's attempts run
-- at the same time. All three are NULL for an attempt that is started alone.
ALTER TABLE ork.attempts
    ADD COLUMN group_id text COLLATE "C",
    ADD COLUMN group_index integer,
    ADD COLUMN parallelism integer;

-- Slots are counted from this index alone. A group and its parallelism do not change while an attempt is active.
DROP INDEX ork.attempts_active;
CREATE INDEX attempts_active ON ork.attempts (run_id, executor, pool, is_waiting, group_id, parallelism) WHERE active;

CREATE TYPE ork.group_place AS (id text, index integer, parallelism integer);

-- Which launches fit, in the order given. A wish that is turned away takes nothing from the others. Whoever admits holds
-- the locks of limits and buckets until its commit, so the next one counts it too.
-- _limits: the names of all limits that some attempt counts against; _rates: of each attempt its task's own rate, if any,
-- and NULL altogether where no attempt has one or is in a pool. _groups: of each attempt its group, if any, and NULL altogether
-- where there is none; the attempts of one group follow each other. A group takes the slots that are free, up to its
-- parallelism: its further attempts wait inside it and need none. granted: of each admitted attempt, what its group got.
CREATE FUNCTION ork.admit(
    _attempts ork.attempt_row[], _groups ork.group_place[], _limits text[], _rates ork.start_rate[], _moment timestamptz,
    OUT admitted integer[], OUT granted integer[], OUT exhausted text[], OUT again_in double precision
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
    _group ork.group_place;
    _last text;       -- the group of the attempt before
    _free bigint;     -- slots below every limit that the attempt counts against; NULL: it counts against none
    _got integer;     -- the parallelism of its group
    _taken integer;   -- how many attempts of its group were admitted
BEGIN
    SELECT array_agg(l.name), array_agg(l.slots) INTO _names, _left
    FROM (SELECT name, slots FROM ork.limits WHERE name = ANY (_limits) ORDER BY name FOR UPDATE) AS l;
    IF _names IS NOT NULL THEN
        -- By a statement that begins when the locks are held: it sees whatever was admitted before. A walk over the index
        -- of active attempts: it costs what is active now.
        WITH active AS MATERIALIZED (
            SELECT executor, pool, least(parallelism, count(*)) AS number FROM ork.attempts
            WHERE active AND NOT is_waiting
            GROUP BY executor, pool, group_id, parallelism)
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
        IF _groups IS NOT NULL THEN
            granted := ARRAY (SELECT g.parallelism FROM unnest(_groups) WITH ORDINALITY AS g ORDER BY g.ordinality);
        END IF;
        RETURN;
    END IF;
    FOREACH _attempt IN ARRAY _attempts LOOP
        _place := _place + 1;
        _free := NULL;
        FOREACH _name IN ARRAY ARRAY ['*', 'executor:' || _attempt.executor, 'pool:' || _attempt.pool] LOOP
            _free := least(_free, _left[array_position(_names, _name)]);
        END LOOP;
        _group := _groups[_place];
        IF _group.id IS DISTINCT FROM _last THEN
            _last := _group.id;
            _got := least(_group.parallelism, _free);
            _taken := 0;
        END IF;
        _fits := coalesce(CASE WHEN _group.id IS NULL THEN _free ELSE _got END > 0, true);
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
        IF _groups IS NOT NULL THEN
            granted := array_append(granted, CASE WHEN _group.id IS NOT NULL THEN _got END);
        END IF;
        IF _group.id IS NULL OR _taken < _got THEN
            FOREACH _name IN ARRAY ARRAY ['*', 'executor:' || _attempt.executor, 'pool:' || _attempt.pool] LOOP
                _at := array_position(_names, _name);
                IF _at IS NOT NULL THEN
                    _left[_at] := _left[_at] - 1;
                END IF;
            END LOOP;
        END IF;
        _taken := _taken + 1;
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

-- As before, and with groups.
CREATE FUNCTION ork.commit_step(
    _scheduler text, _ids text[], _epochs bigint[], _unaware text[], _runs ork.run_change[], _touched ork.run_touch[],
    _tasks ork.task_row[], _attempts ork.attempt_row[], _added ork.task_row[], _moved ork.moved[], _commands bigint[],
    _command_runs text[],
    _wished_tasks ork.task_row[], _wished_attempts ork.attempt_row[], _groups ork.group_place[],
    _limits text[], _rates ork.start_rate[],
    _alerts ork.alert_row[], _succeeded text[], _now timestamptz, _moment timestamptz, _slot integer, _handle text,
    OUT fenced text[], OUT overruled text[], OUT admitted integer[], OUT granted integer[], OUT exhausted text[],
    OUT again_in double precision, OUT told boolean
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
        WHERE run_id = ANY (_unaware) AND kind = 'cancel' AND done_at IS NULL AND NOT run_id = ANY (coalesce(fenced, '{}'))
            AND run_id IN (SELECT id FROM ork.runs WHERE status NOT IN ('success', 'failed', 'cancelled'));
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
        SELECT * INTO admitted, granted, exhausted, again_in
        FROM ork.admit(_wished_attempts, _groups, _limits, _rates, _moment);
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
        IF granted IS NOT NULL THEN
            UPDATE ork.attempts AS a SET group_id = g.id, group_index = g.index, parallelism = n.parallelism
            FROM unnest(admitted, granted) WITH ORDINALITY AS n (place, parallelism, position)
            JOIN unnest(_groups) WITH ORDINALITY AS g ON g.ordinality = n.place
            JOIN unnest(_wished_attempts) WITH ORDINALITY AS w ON w.ordinality = n.position
            WHERE n.parallelism IS NOT NULL
              AND a.run_id = w.run_id AND a.ordinal = w.ordinal AND a.idx = w.idx AND a.number = w.number;
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

-- For processes of an older Ork, which start every attempt alone.
CREATE OR REPLACE FUNCTION ork.commit_step(
    _scheduler text, _ids text[], _epochs bigint[], _unaware text[], _runs ork.run_change[], _touched ork.run_touch[],
    _tasks ork.task_row[], _attempts ork.attempt_row[], _added ork.task_row[], _moved ork.moved[], _commands bigint[],
    _command_runs text[],
    _wished_tasks ork.task_row[], _wished_attempts ork.attempt_row[], _limits text[], _rates ork.start_rate[],
    _alerts ork.alert_row[], _succeeded text[], _now timestamptz, _moment timestamptz, _slot integer, _handle text,
    OUT fenced text[], OUT overruled text[], OUT admitted integer[], OUT exhausted text[], OUT again_in double precision,
    OUT told boolean
) LANGUAGE plpgsql AS $$
BEGIN
    SELECT s.fenced, s.overruled, s.admitted, s.exhausted, s.again_in, s.told
    INTO fenced, overruled, admitted, exhausted, again_in, told
    FROM ork.commit_step(
        _scheduler, _ids, _epochs, _unaware, _runs, _touched, _tasks, _attempts, _added, _moved, _commands, _command_runs,
        _wished_tasks, _wished_attempts, NULL, _limits, _rates, _alerts, _succeeded, _now, _moment, _slot, _handle) AS s;
END $$;

DROP FUNCTION ork.admit(ork.attempt_row[], text[], ork.start_rate[], timestamptz);
