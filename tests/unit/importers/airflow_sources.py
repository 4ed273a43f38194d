"""DAG files for tests, and how they are imported."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from ork.importers.airflow import import_airflow
from ork.importers.project import ImportedProject, ImportedWorkflow

HEAD = """\
from datetime import datetime, timedelta
import json, os
import pendulum
from airflow import DAG
from airflow.decorators import dag, task, task_group
from airflow.models import Variable
from airflow.models.baseoperator import chain, cross_downstream
from airflow.operators.bash import BashOperator
from airflow.operators.empty import EmptyOperator
from airflow.operators.python import PythonOperator, BranchPythonOperator, ShortCircuitOperator
from airflow.utils.task_group import TaskGroup
"""


def imported(folder: Path, source: str, **files: str) -> ImportedProject:
    """The project of one DAG file and further files beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dag.py").write_text(HEAD + textwrap.dedent(source))
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(textwrap.dedent(text))
    return import_airflow(str(folder))


def in_dag(folder: Path, body: str, keywords: str = "schedule=None", before: str = "") -> ImportedWorkflow:
    """The workflow of a DAG with this body."""
    text = (
        textwrap.dedent(before)
        + f"\nwith DAG('d', {keywords}) as dag:\n"
        + textwrap.indent(textwrap.dedent(body), "    ")
    )
    (workflow,) = imported(folder, text).workflows
    return workflow


def keys(workflow: ImportedWorkflow, task: str) -> dict[str, Any]:
    return workflow.tasks[task].keys
