-- A scheduler may work on some runs only: the setting `ork.only`, for one transaction, names them. It also gets their
-- sub-workflows, and runs with an attempt that is active and that nobody looks after. Unset or empty: any run.

-- Runs that can be claimed, locked. Looks again while some were passed over because their workflow filled up: each time one
-- workflow fewer.
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
