"""Imports DAGs of Airflow: `evaluator.py` finds DAGs, tasks and edges; `dag_builder.py` makes a workflow of each.

`operators.py`, `sql_tasks.py`, `sensors.py` and `python_tasks.py` say what tasks become, `templates.py` what templates become.
`from_airflow.py` and `from_airflow_hooks.py` are copied into the project for functions that use names of Airflow.
"""

from __future__ import annotations

import ast
import re
from functools import cache

from ork.importers.airflow.dag_builder import HOOKS, MODULE, DagBuilder
from ork.importers.airflow.evaluator import AirflowEvaluator
from ork.importers.airflow.objects import FRAMEWORK_OBJECTS, Dag
from ork.importers.project import ImportedProject, Level, SourcePlace
from ork.importers.python.evaluate import TooMuchError
from ork.importers.python.extract import CopiedFiles, Framework
from ork.importers.python.modules import Sources
from ork.importers.sources import copied_text, files_below

COPIED = (HOOKS, MODULE)
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
        Framework(("airflow",), replacement_names()),
        lambda value: isinstance(value, FRAMEWORK_OBJECTS),
        lambda node: _DECORATOR.match(ast.unparse(node)) is not None,
    )
    for dag, evaluator in _dags(path, sources, project):
        DagBuilder(dag, project, files, evaluator).build()
    project.files |= {name: text for name, text in files.texts().items() if name not in project.files}
    for module in COPIED:  # the hooks use the other one
        if any(f"from {module} import" in text or f"{module}:" in text for text in project.files.values()):
            project.files[f"{module}.py"] = copied_text(module)
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
                Level.PERSON,
                "the file does more than an import follows; it was left out after that",
                SourcePlace(module.path, 1),
            )
        dags = [dag for dag in evaluator.dags if dag.tasks and (dag.dag_id, dag.place.file, dag.place.line) not in seen]
        seen |= {(dag.dag_id, dag.place.file, dag.place.line) for dag in dags}
        if not dags and evaluator.dags:
            project.note(
                Level.PERSON,
                "no task of its DAG is known before the file is run",
                SourcePlace(module.path, evaluator.dags[0].place.line),
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
def replacement_names() -> dict[str, str]:
    """The names of Airflow that have a replacement, and the module that has it."""
    found: dict[str, str] = {}
    for module in reversed(COPIED):
        for node in ast.parse(copied_text(module)).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found[node.name] = module
            elif isinstance(node, ast.Assign):
                found |= {target.id: module for target in node.targets if isinstance(target, ast.Name)}
    return found


__all__ = ["import_airflow"]
