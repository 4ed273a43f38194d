-- name: find_schema
-- From the tables themselves: to_regclass may answer from a cache that a wait for a lock does not refresh.
SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'ork'),
       EXISTS (SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
               WHERE n.nspname = 'ork' AND c.relname = 'schema');

-- name: schema_number
SELECT number FROM ork.schema;

-- name: take_your_time
-- Whoever waits here waits for another process that brings the same database up to date.
SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '10min'; SET LOCAL idle_in_transaction_session_timeout = '10min';

-- name: lock_schema
-- "Ork" in ASCII; let go at the end of the transaction, however that comes about.
SELECT pg_advisory_xact_lock(5206635);

-- name: set_schema_number
UPDATE ork.schema SET number = $1;

-- name: make_signing_key
INSERT INTO ork.meta (name, value) VALUES ('signing_key', $1);
