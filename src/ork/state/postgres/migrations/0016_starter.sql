-- Who asked for the run: a person or a token. None for schedules, and for runs of an older schema.
ALTER TABLE ork.runs ADD COLUMN started_by text;

-- As before, and with that. The one without it stays for processes of an older Ork.
CREATE FUNCTION ork.create_runs(
    _ids text[], _workflows text[], _versions text[], _triggers text[], _params text[], _scheduled_for timestamptz[],
    _priorities integer[], _keys text[], _fresh boolean[], _parents text[], _starters text[], _now timestamptz, _slot integer, _handle text
) RETURNS SETOF text LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    _changed bigint := ork.next_change();
    _added integer;
BEGIN
    RETURN QUERY
        INSERT INTO ork.runs AS r (id, workflow, version, status, trigger, params, created_at, scheduled_for, round,
                                   priority, key, fresh, parent, started_by, epoch, attention, changed)
        SELECT n.id, n.workflow, v.id, 'pending', n.trigger, n.params, _now, n.scheduled_for, 1, n.priority, n.key,
               n.fresh, n.parent, n.started_by, 0, true, _changed
        FROM unnest(_ids, _workflows, _versions, _triggers, _params, _scheduled_for, _priorities, _keys, _fresh, _parents, _starters)
            WITH ORDINALITY
            AS n (id, workflow, version, trigger, params, scheduled_for, priority, key, fresh, parent, started_by, place)
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
