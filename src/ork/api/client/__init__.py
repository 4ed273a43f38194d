"""The other end of the API: a store and objects that are reached through a server. Standard library only."""
