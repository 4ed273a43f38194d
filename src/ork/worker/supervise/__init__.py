"""Supervising one attempt, from claiming it to its last status.

In: an attempt to claim (`claim`). Out: its status documents, its log and its output. `shim` starts the user's part as a job (a
function, a command, a build), reads its pipes, writes heartbeats, stops it when asked or when time is up, and returns only when no process
of the attempt is left.
"""
