"""A Python workflow run here and now, for tests and notebooks: the real rules, without store, scheduler or workers."""
