-- Images and folders that workflows come from, and what became of looking into them.

-- held_until: somebody looks into it. digest: what its workflows come from. seen: what was looked into last.
CREATE TABLE locations (
    name       TEXT PRIMARY KEY,
    source     TEXT NOT NULL,
    due_at     TEXT NOT NULL,
    is_asked   INTEGER NOT NULL DEFAULT 0,
    held_until TEXT,
    digest     TEXT,
    seen       TEXT,
    looked_at  TEXT,
    changed_at TEXT,
    code       TEXT,
    error      TEXT,
    output     TEXT
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 5;
