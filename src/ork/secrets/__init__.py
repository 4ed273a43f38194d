"""The secrets of a project: which workflows may use them, and where their values come from.

Values exist only in memory: in this process while it passes them on, and in a worker's environment while it runs.
"""
