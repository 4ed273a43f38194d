"""Workflows that are written as a function that calls tasks: Prefect's flows and Dagster's jobs.

`steps.py` has what such calls yield, `evaluator.py` follows the function, `builder.py` makes a workflow of the calls. The
modules `from_prefect.py` and `from_dagster.py` are copied into projects for functions that use names of these tools.
"""
