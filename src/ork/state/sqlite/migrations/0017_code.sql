-- The code of a version, as JSON: a hash of the project's files, and their commit. NULL for versions of older releases.
ALTER TABLE versions ADD COLUMN code TEXT;

PRAGMA user_version = 17;
