-- Runs that were forgotten and whose objects may still be there: whoever forgets runs next deletes those first.
CREATE TABLE ork.leftovers (
    run_id text COLLATE "C" PRIMARY KEY
);
