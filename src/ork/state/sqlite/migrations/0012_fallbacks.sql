-- What a scheduler does more slowly than it should, and why: a JSON list of sentences, for people who look from elsewhere.
ALTER TABLE schedulers ADD COLUMN notes TEXT NOT NULL DEFAULT '[]';

PRAGMA user_version = 12;
