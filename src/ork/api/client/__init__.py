"""The client of the API: a state store and an object store behind a server."""
