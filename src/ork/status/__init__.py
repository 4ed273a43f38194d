"""Read models for people: shared by the command line, the HTTP API and reports."""
