-- A limit below which nothing is left is told at once: whoever filled it need not ask once more to learn of it.

-- Which launches fit, in the order given. A wish that is turned away takes nothing from the others. Whoever admits holds
-- the locks of limits and buckets until its commit, so the next one counts it too.
-- _limits: the names of all limits that some attempt counts against; _rates: of each attempt its task's own rate, if any,
-- and NULL altogether where no attempt has one or is in a pool.
CREATE OR REPLACE FUNCTION ork.admit(
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
