-- Images and folders that workflows come from, and what became of looking into them.
-- held_until: somebody looks into it. digest: what its workflows come from. seen: what was looked into last.
CREATE TABLE ork.locations (
    name       text COLLATE "C" PRIMARY KEY,
    source     text NOT NULL,
    due_at     timestamptz NOT NULL,
    is_asked   boolean NOT NULL DEFAULT false,
    held_until timestamptz,
    digest     text COLLATE "C",
    seen       text COLLATE "C",
    looked_at  timestamptz,
    changed_at timestamptz,
    code       text COLLATE "C",
    error      text,
    output     text
);
