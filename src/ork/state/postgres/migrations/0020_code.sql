-- The code of a version, as JSON: a hash of the project's files, and their commit. NULL for versions of older releases.
ALTER TABLE ork.versions ADD COLUMN code text;
