"""Writes a workflow as files that need no Ork: a Makefile, a shell script, and manifests where they fit.

`plan.py` turns a compiled workflow into `tasks.json` and says what does not fit; `task.py` and `functions.py` are copied and run
the tasks; `makefile.py`, `kubernetes.py` and `cloud_workflows.py` write the forms; `folder.py` puts them together.
"""
