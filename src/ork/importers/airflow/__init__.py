"""Imports DAGs of Airflow: `evaluator.py` finds DAGs, tasks and edges; `dag_builder.py` makes a workflow of each.

`operators.py`, `sql_tasks.py`, `sensors.py` and `python_tasks.py` say what tasks become, `templates.py` what templates become.
`from_airflow.py` is copied into the project for functions that use names of Airflow.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib import resources

from ork.importers.airflow.dag_builder import MODULE, DagBuilder
from ork.importers.airflow.evaluator import AirflowEvaluator
from ork.importers.airflow.objects import FRAMEWORK_OBJECTS, Dag
from ork.importers.project import ImportedProject, Level, SourceLine
from ork.importers.python.evaluate import TooMuchError
from ork.importers.python.extract import CopiedFiles, Framework
from ork.importers.python.modules import Sources
from ork.importers.sources import files_below

_IS_DAG_FILE = re.compile(r"\bDAG\s*\(|@dag\b|\bdag\(")
_DECORATOR = re.compile(
    r"(airflow\.)?(\w+\.)*(task|dag|task_group|setup|teardown)(\.\w+)*(\(|$)|\w+\.task\b|apply_defaults"
)


def import_airflow(path: str) -> ImportedProject:
    """The project of all DAGs in a folder or file."""
    project = ImportedProject(source=path, kind="airflow")
    sources = Sources(path, project)
    files = CopiedFiles(
        sources,
        Framework(("airflow",), replacement_names(), MODULE),
        lambda value: isinstance(value, FRAMEWORK_OBJECTS),
        lambda node: _DECORATOR.match(ast.unparse(node)) is not None,
    )
    for dag, evaluator in _dags(path, sources, project):
        DagBuilder(dag, project, files, evaluator).build()
    project.files |= {name: text for name, text in files.texts().items() if name not in project.files}
    if any(f"from {MODULE} import" in text or f"{MODULE}:" in text for text in project.files.values()):
        project.files[f"{MODULE}.py"] = _replacements()
    _check_triggers(project)
    return project


def _dags(path: str, sources: Sources, project: ImportedProject) -> list[tuple[Dag, AirflowEvaluator]]:
    found: list[tuple[Dag, AirflowEvaluator]] = []
    seen: set[tuple[str, str, int]] = set()
    for file in files_below(path, (".py",)):
        module = sources.load(file)
        if module is None or "airflow" not in module.text or not _IS_DAG_FILE.search(module.text):
            continue
        evaluator = AirflowEvaluator(sources)
        module.is_evaluated = False
        try:
            evaluator.evaluate_module(module)
        except TooMuchError:
            project.note(
                Level.TODO,
                "the file does more than an import follows; it was left out after that",
                SourceLine(module.path, 1),
            )
        dags = [dag for dag in evaluator.dags if dag.tasks and (dag.dag_id, dag.place.file, dag.place.line) not in seen]
        seen |= {(dag.dag_id, dag.place.file, dag.place.line) for dag in dags}
        if not dags and evaluator.dags:
            project.note(
                Level.TODO,
                "no task of its DAG is known before the file is run",
                SourceLine(module.path, evaluator.dags[0].place.line),
            )
        found += [(dag, evaluator) for dag in dags]
    return found


def _check_triggers(project: ImportedProject) -> None:
    """Sub-workflows must exist, and declare what they are given."""
    known = {workflow.name: workflow for workflow in project.workflows}
    for workflow in project.workflows:
        for task in workflow.tasks.values():
            target = task.keys.get("workflow")
            if target is None:
                continue
            if target not in known:
                task.leave_to_a_person(f"the DAG `{target}` that it triggers is not in this folder")
                continue
            params = known[target].keys.setdefault("params", {})
            for name in task.keys.get("inputs", {}):
                params.setdefault(name, {"default": None})
            if not params:
                del known[target].keys["params"]


@cache
def _replacements() -> str:
    return (resources.files(__package__) / f"{MODULE}.py").read_text(encoding="utf-8")


@cache
def replacement_names() -> frozenset[str]:
    """The names of Airflow that have a replacement."""
    tree = ast.parse(_replacements())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(names)


__all__ = ["import_airflow"]
