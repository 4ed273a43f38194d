-- Items that cannot be decoded or worked with, and why. A run in here is not claimed until a person asks something of it.
CREATE TABLE ork.quarantine (
    kind   text COLLATE "C" NOT NULL,
    id     text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    since  timestamptz NOT NULL,
    PRIMARY KEY (kind, id)
);

-- A time that a client can decode; one that no client can becomes one that every client tells from all real times.
CREATE FUNCTION ork.readable(_moment timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN _moment IS NULL OR (_moment >= '0001-01-03 00:00+00' AND _moment < '9999-12-30 00:00+00') THEN _moment
                ELSE '-infinity' END
$$;

-- As before, but for times that a client cannot decode: one of them must not hide all the other rows.
CREATE OR REPLACE FUNCTION ork.claim(
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
            SELECT t.id, t.workflow, t.version, t.status, t.trigger, t.params, ork.readable(t.created_at),
                   ork.readable(t.scheduled_for), ork.readable(t.started_at), ork.readable(t.finished_at), t.error, t.round,
                   t.priority, ork.readable(t.cancel_requested_at), t.note, t.fresh, t.parent, t.epoch, t.changed,
                   NULL::bigint, NULL, NULL, NULL, NULL::boolean, NULL
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

-- As before, but that a run that is set aside takes nobody's place.
CREATE OR REPLACE FUNCTION ork.pick_runs(_room integer) RETURNS text[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    _limited text[];  -- workflows that limit their runs and have some waiting; who claims for the same ones waits here
    _free bigint[];   -- how many more runs each may have active
    _run record;
    _at integer;
    _taken text[] := '{}';
    _passed_over boolean;
    _only text[] := string_to_array(nullif(current_setting('ork.only', true), ''), ',');
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
              AND (r.status IN ('running', 'paused') OR (r.status = 'pending' AND r.owner IS NOT NULL))
              AND NOT EXISTS (SELECT 1 FROM ork.quarantine AS q WHERE q.kind = 'run' AND q.id = r.id)))
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
              AND (_only IS NULL OR r.id = ANY (_only)
                   OR (strpos(r.parent, '/') > 0 AND split_part(r.parent, '/', 1) = ANY (_only))
                   OR (r.epoch > 0 AND EXISTS (SELECT 1 FROM ork.attempts AS a WHERE a.run_id = r.id AND a.active)))
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
