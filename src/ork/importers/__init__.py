"""Reads definitions of other tools without running them, and writes an Ork project with a report.

Each source is a module or package with one function that returns an `ImportedProject`: `crontab`, `airflow`,
`github_actions`, `prefect`, `dagster`. `project.py` is the form between them and the files, `write.py` writes the folder,
`report.py` the report. `python/` evaluates Python sources that the last three and Airflow share.
"""
