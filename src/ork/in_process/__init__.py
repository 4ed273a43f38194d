"""Runs a Python workflow in this process, for tests and notebooks: the real state machine, without store, scheduler and
workers."""
