-- What people told schedulers to do: pause or drain. target: '*', a scheduler's id, or a host's name.
CREATE TABLE ork.controls (
    target   text PRIMARY KEY,
    mode     text NOT NULL,
    asked_by text NOT NULL,
    asked_at timestamptz NOT NULL,
    reason   text
);
