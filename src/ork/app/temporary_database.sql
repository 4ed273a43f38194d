-- Databases that exist only for a measurement or a trial. No parameters are possible here; the name is made of letters and digits.

-- name: create
CREATE DATABASE NAME;

-- name: drop
DROP DATABASE IF EXISTS NAME WITH (FORCE);

-- name: cut_connections
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'NAME' AND pid <> pg_backend_pid();
