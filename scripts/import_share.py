"""Prints which share of the tasks of Airflow DAGs `ork import airflow` translates, by operator.

Usage: python scripts/import_share.py FOLDER…   each folder is one collection of DAGs, for instance a cloned repository

Nothing of the folders is run or copied. With `--reasons` it also prints why tasks were left to a person; with `--check` it
writes each project to a temporary folder, which validates it.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections import Counter, defaultdict

from ork.importers.airflow import import_airflow
from ork.importers.project import ImportedProject, ImportedTask, Level
from ork.importers.report import TranslatedShare, share_of
from ork.importers.write import write_project

NAMED = ("Bash", "Python", "Docker", "KubernetesPod", "Http", "SQL")
SQL = re.compile(
    r"(Postgres|MySql|MsSql|Sqlite|Snowflake|BigQuery\w*|Redshift\w*|SQLExecuteQuery|Trino|Oracle)(SQL)?Operator"
)


def family(origin: str) -> str | None:
    """The family of an operator that the target names, or None."""
    if SQL.fullmatch(origin):
        return "SQL"
    if origin in ("@task", "@task.virtualenv", "PythonOperator", "PythonVirtualenvOperator", "ExternalPythonOperator"):
        return "Python"
    if origin in ("BashOperator", "@task.bash"):
        return "Bash"
    if origin in ("SimpleHttpOperator", "HttpOperator"):
        return "Http"
    return {"DockerOperator": "Docker", "KubernetesPodOperator": "KubernetesPod"}.get(origin)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--reasons", type=int, default=0, metavar="N", help="print the N most frequent reasons")
    parser.add_argument("--check", action="store_true", help="write and validate each project")
    options = parser.parse_args()
    projects = [read(folder, options.check) for folder in options.folders]
    workflows = [workflow for project in projects for workflow in project.workflows]
    tasks = [task for workflow in workflows for task in workflow.tasks.values() if not task.is_helper]
    print(f"{len(projects)} collections, {len(workflows)} DAGs, {len(tasks)} tasks\n")
    print(f"{'':30} {'tasks':>6} {'as is':>6} {'check':>6} {'person':>6} {'share':>7}")
    by_family: dict[str, list[ImportedTask]] = defaultdict(list)
    by_origin: dict[str, list[ImportedTask]] = defaultdict(list)
    for task in tasks:
        by_family[family(task.origin) or "other"].append(task)
        by_origin[task.origin].append(task)
    for name in NAMED:
        line(name, share_of(by_family[name]))
    line("these six", share_of(task for name in NAMED for task in by_family[name]))
    line("all", share_of(tasks))
    print()
    for origin, found in sorted(by_origin.items(), key=lambda pair: -len(pair[1])):
        if len(found) >= 3:
            line(origin, share_of(found))
    reasons = Counter(
        f"{task.origin}: {re.sub(r'`[^`]*`', '`…`', note.text)}"
        for task in tasks
        for note in task.notes
        if note.level == Level.PERSON
    )
    for reason, count in reasons.most_common(options.reasons):
        print(f"{count:5}  {reason}")
    return 0


def read(folder: str, check: bool) -> ImportedProject:
    project = import_airflow(folder)
    if check and project.workflows:
        with tempfile.TemporaryDirectory() as scratch:
            write_project(project, os.path.join(scratch, "out"))
    return project


def line(name: str, share: TranslatedShare) -> None:
    if share.total:
        print(
            f"{name[:30]:30} {share.total:6} {share.translated:6} {share.check:6} {share.person:6} {share.percent:6.1f}%"
        )


if __name__ == "__main__":
    sys.exit(main())
