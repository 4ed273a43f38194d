"""The floors: the cost of the same work without an engine."""
