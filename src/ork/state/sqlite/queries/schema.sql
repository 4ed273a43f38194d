-- name: schema_number
-- Both numbers stand in the file's header; the second tells our databases from those of other programs.
SELECT user_version, application_id FROM pragma_user_version, pragma_application_id;

-- name: count_schema_objects
-- A database without a schema number that is not empty belongs to somebody else.
SELECT count(*) FROM sqlite_master;

-- name: make_signing_key
INSERT INTO meta (name, value) VALUES ('signing_key', :key);
