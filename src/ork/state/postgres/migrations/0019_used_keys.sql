-- Keys of things that work once, such as tickets of the web UI. A row is deleted some time after the thing has expired.
CREATE TABLE ork.used_keys (key text COLLATE "C" PRIMARY KEY, until timestamptz NOT NULL);
CREATE INDEX used_keys_until ON ork.used_keys (until);
