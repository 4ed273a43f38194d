"""The floors: what the same work costs with no engine at all."""
