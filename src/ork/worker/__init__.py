"""Inside the attempt: a small shim that runs one try of one task. Standard library only, and quick to start."""
