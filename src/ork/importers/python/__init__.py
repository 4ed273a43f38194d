"""Evaluates Python sources without running them, and copies functions out of them.

`modules.py` finds and parses files, `evaluate.py` and `expressions.py` follow assignments, loops over known values and calls of
functions in the sources, `values.py` has what they yield. `extract.py` writes a module that has only the functions that tasks
need, with what these use.
"""
