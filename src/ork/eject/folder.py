"""Writes the ejected folder: code, plan, Makefile, script, manifests, and a README that says what is missing."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from ork.eject.cloud_workflows import cloud_workflow_text, fits_cloud_workflows
from ork.eject.kubernetes import DOCKERFILE, fits_kubernetes, manifest_text
from ork.eject.makefile import makefile_text, script_text
from ork.eject.plan import misfits, plan_of
from ork.errors import RefusedError, UsageError
from ork.model.workflow import CompiledWorkflow, SubWorkflow, Version

IGNORED = (
    ".ork",
    ".git",
    ".venv",
    "venv",
    "__pycache__",
    "node_modules",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
)
MAX_BYTES = 1024 * 1024 * 1024


def eject(
    version: Version,
    folder: str,
    others: Mapping[str, Version],
    params: Mapping[str, Any] | None = None,
    script_dir: str | None = None,
) -> list[str]:
    """Writes the folder and returns what does not fit. `others` are the sub-workflows by name; `params` those of a run."""
    target = os.path.abspath(folder)
    if os.path.lexists(target) and (not os.path.isdir(target) or os.listdir(target)):
        raise RefusedError(f"{folder} is not empty: nothing was written", hint="name a new folder: -o DIR")
    parent = os.path.dirname(target)
    try:
        os.makedirs(parent, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".ork-eject-", dir=parent) as scratch:
            work = os.path.join(scratch, "out")
            notes = _write(version, work, others, params or {}, script_dir, ())
            if os.path.isdir(target):
                os.rmdir(target)
            os.rename(work, target)
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror}; nothing was left there") from error
    return notes


def _write(
    version: Version,
    folder: str,
    others: Mapping[str, Version],
    params: Mapping[str, Any],
    script_dir: str | None,
    chain: tuple[str, ...],
) -> list[str]:
    workflow = version.workflow
    if workflow.name in chain:
        raise RefusedError(f"{' → '.join([*chain, workflow.name])}: a workflow that contains itself cannot be ejected")
    os.makedirs(folder)
    project = os.path.normpath(os.path.join(version.root, workflow.project or "."))
    _copy_code(project, os.path.join(folder, "code"), os.path.dirname(os.path.abspath(folder)))
    plan = plan_of(workflow, os.path.relpath(version.root, project), _relative(script_dir, project))
    for name, value in params.items():
        if name in plan["params"]:
            plan["params"][name] |= {"default": value, "required": False}
    notes = misfits(workflow)
    _text(folder, "tasks.json", json.dumps(plan, indent=2, ensure_ascii=False) + "\n")
    _text(folder, "Makefile", makefile_text(workflow))
    _text(folder, "run.sh", script_text(workflow), executable=True)
    for name in ("task.py", "functions.py"):
        _text(folder, name, (resources.files("ork.eject.copied") / name).read_text(encoding="utf-8"))
    notes += _manifests(workflow, folder)
    notes += _sub_workflows(workflow, folder, others, script_dir, (*chain, workflow.name))
    _text(folder, "README.md", _readme(workflow, notes))
    return notes


def _manifests(workflow: CompiledWorkflow, folder: str) -> list[str]:
    notes = []
    reason = fits_kubernetes(workflow)
    if reason is None:
        name = "cronjob.yaml" if workflow.schedule is not None else "job.yaml"
        _text(folder, name, manifest_text(workflow))
        _text(folder, "Dockerfile", DOCKERFILE)
    else:
        notes.append(f"no manifest for Kubernetes: {reason}")
    reason = fits_cloud_workflows(workflow)
    if reason is None:
        _text(folder, "cloud-workflow.yaml", cloud_workflow_text(workflow))
    else:
        notes.append(f"no definition for Google's Workflows: {reason}")
    return notes


def _sub_workflows(
    workflow: CompiledWorkflow,
    folder: str,
    others: Mapping[str, Version],
    script_dir: str | None,
    chain: tuple[str, ...],
) -> list[str]:
    notes: list[str] = []
    wanted = {task.action.name: task.name for task in workflow.tasks if isinstance(task.action, SubWorkflow)}
    for name, task in wanted.items():
        child = others.get(name)
        if child is None:
            notes.append(f"`{task}`: the workflow `{name}` was not found; the task fails")
            continue
        notes += [
            f"{name}: {note}"
            for note in _write(child, os.path.join(folder, "sub", name), others, {}, script_dir, chain)
        ]
    return notes


def _copy_code(source: str, target: str, inside: str) -> None:
    """Copies the project's files, without what tools made. Refuses more than 1 GiB."""
    size = 0

    def ignored(folder: str, names: Sequence[str]) -> set[str]:
        nonlocal size
        found = {name for name in names if name in IGNORED or name.startswith((".ork-eject-", ".env"))}
        found |= {name for name in names if os.path.join(folder, name) == inside}
        for name in set(names) - found:
            path = os.path.join(folder, name)
            size += os.path.getsize(path) if os.path.isfile(path) and not os.path.islink(path) else 0
        if size > MAX_BYTES:
            raise RefusedError(
                f"the files of {source} are larger than 1 GiB", hint="keep data out of the project's folder"
            )
        return found

    shutil.copytree(source, target, ignore=ignored, symlinks=True)


def _relative(path: str | None, project: str) -> str | None:
    if path is None:
        return None
    found = os.path.relpath(os.path.join(project, path), project)
    return None if found.startswith("..") else found


def _text(folder: str, name: str, text: str, *, executable: bool = False) -> None:
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    if executable:
        os.chmod(path, 0o755)


def _readme(workflow: CompiledWorkflow, notes: Sequence[str]) -> str:
    missing = "".join(f"- {note}\n" for note in notes) or "- nothing that this workflow uses\n"
    extra = "| `cronjob.yaml`, `job.yaml`, `Dockerfile` | a Kubernetes CronJob (or Job) that runs `make` in an image of this folder |\n"
    return f"""\
# {workflow.name}

{workflow.description or "A workflow"}, ejected from Ork. It needs Python 3.11 or later, and make for the first form.

```console
$ make -j4                  # tasks in parallel; a second `make` runs what did not succeed
$ ./run.sh name=value       # the same without make, one task after the other
```

| File | |
|---|---|
| `Makefile`, `run.sh` | the order of the tasks |
| `tasks.json` | what each task runs, its inputs, retries, timeout and conditions |
| `task.py`, `functions.py` | run one task; plain Python, yours to change |
| `code/` | the project's files |
| `out/` | written by a run: the output of each task as JSON, its log, and how it ended |
{extra}
## What it does not do

{missing}- what only a scheduler can do: it does not survive the death of the machine, and runs are not kept
"""
