"""The client of the API: a state store and an object store that are reached through a server."""
