-- As before, but a cancel of a run that has ended already overrules nothing: it was for an earlier round.
CREATE OR REPLACE FUNCTION ork.commit_step(
    _scheduler text, _ids text[], _epochs bigint[], _unaware text[], _runs ork.run_change[], _touched ork.run_touch[],
    _tasks ork.task_row[], _attempts ork.attempt_row[], _added ork.task_row[], _moved ork.moved[], _commands bigint[],
    _command_runs text[],
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
