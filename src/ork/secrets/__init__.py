"""Secrets of a project: which ones a workflow may have, and where their values come from.

Values exist only in memory: in this process while it hands them out, in a worker's environment while it runs.
"""
