-- What a scheduler does more slowly than it should, and why: a JSON list of sentences, for people who look from elsewhere.
ALTER TABLE ork.schedulers ADD COLUMN notes text NOT NULL DEFAULT '[]';
