-- Runs that were forgotten and whose objects may still be there: whoever forgets runs next deletes those first.
CREATE TABLE leftovers (
    run_id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 6;
