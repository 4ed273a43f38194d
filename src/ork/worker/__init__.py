"""Inside an attempt: the worker, its supervision of the user's process, and the user's code. Standard library only.

The modules here are entry points, started by `bootstrap.py`: `main` for one attempt, `poll`, `debug` and `inspect`. See docs/workers.md.
"""
