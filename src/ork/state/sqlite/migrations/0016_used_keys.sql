-- Keys of things that work once, such as tickets of the web UI. A row is deleted some time after the thing has expired.
CREATE TABLE used_keys (key TEXT PRIMARY KEY, until TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX used_keys_until ON used_keys (until);

PRAGMA user_version = 16;
