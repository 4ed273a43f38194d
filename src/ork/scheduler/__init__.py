"""Making it so: read, decide, commit, act."""
