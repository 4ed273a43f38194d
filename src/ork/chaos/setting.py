"""What is tried, and the project in the sandbox: stand-ins of the same shape, or a copy of the real one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ork.chaos.ledger import copy_recorder
from ork.chaos.sandbox import Sandbox
from ork.chaos.shape import RealTasks, StandIns, changes, with_stand_ins
from ork.compile.content import make_version
from ork.compile.placement import Placement
from ork.definition.project import Project
from ork.errors import UsageError
from ork.model.record import Record, made
from ork.model.workflow import CloudRunJob, SubWorkflow, Version
from ork.settings import Settings

# Folders that a copy of a project does not need.
_IGNORED = (".ork", ".git", ".venv", "__pycache__", "node_modules", ".mypy_cache", ".pytest_cache", ".ruff_cache")
# What a real task may need of ork.yaml. Stores, alerts, alarms and published pages stay outside.
_KEPT_KEYS = (
    "pools", "executors", "max_workers", "isolation", "durability", "preload", "script_dir", "pass_env", "pythonpath",
    "secrets", "outbound", "codecs", "env_file",
)  # fmt: skip
_RUNS_AT_ONCE = 6


class Setting(Record):
    """A chaos run. `versions` are all workflows in the sandbox, `started` the names of those that get runs. `image`: stand-ins
    run in containers of it."""

    settings: Settings
    versions: tuple[Version, ...]
    started: frozenset[str]
    kills: int
    seed: int
    database: str
    is_real: bool = False
    image: str | None = None
    docker_host: str | None = None
    params: Mapping[str, Mapping[str, Any]] = made(default_factory=dict)
    concurrent_runs: int = _RUNS_AT_ONCE


class Prepared(Record):
    versions: tuple[Version, ...]
    notes: tuple[str, ...]
    unrecorded: frozenset[tuple[str, str]] = frozenset()


def prepare(setting: Setting, sandbox: Sandbox) -> Prepared:
    """Fill the sandbox's project, and make the versions that run in it."""
    return _real(setting, sandbox) if setting.is_real else _stand_ins(setting, sandbox)


def _stand_ins(setting: Setting, sandbox: Sandbox) -> Prepared:
    copy_recorder(sandbox.project)
    project = setting.settings.project_or_default
    _write_project(sandbox, _limits_of(project, setting.settings))
    how = StandIns(sandbox.project, sandbox.ledger.folder, setting.seed, setting.image)
    known = {version.workflow.name: version for version in setting.versions}
    made = [with_stand_ins(version.workflow, known, how) for version in setting.versions]
    notes = changes([version.workflow for version in setting.versions], in_containers=setting.image is not None)
    notes += ["rates of pools are left out"] if project.pool_rates else []
    runs_of_others = {
        (each.name, task.name) for each in made for task in each.tasks if isinstance(task.action, SubWorkflow)
    }
    versions = tuple(make_version(workflow, str(sandbox.project)) for workflow in made)
    return Prepared(versions, tuple(notes), frozenset(runs_of_others))


def _limits_of(project: Project, settings: Settings) -> dict[str, Any]:
    """The part of ork.yaml that shapes how stand-ins are run."""
    kept: dict[str, Any] = {"isolation": settings.isolation, "durability": settings.durability}
    if project.pools:
        kept["pools"] = dict(project.pools)
    if project.max_workers:
        kept["max_workers"] = project.max_workers
    return kept


def _real(setting: Setting, sandbox: Sandbox) -> Prepared:
    settings = setting.settings
    _refuse_platforms(setting)
    _copy(settings.root, sandbox.project)
    copy_recorder(sandbox.project)
    _write_project(sandbox, _written_keys(settings.root))
    env_file = settings.env_file or os.path.join(settings.root, ".env")
    if os.path.isfile(env_file):
        sandbox.variables["ORK_ENV_FILE"] = env_file  # read where it is: secrets are not copied
    if settings.task_user is not None:
        sandbox.admit_others()
        sandbox.variables["ORK_TASK_USER"] = settings.task_user
    script_dir = _moved(settings.script_dir, settings.root, sandbox.project)
    tasks = RealTasks(settings.root, sandbox.project, sandbox.ledger.folder, script_dir)
    versions = []
    for version in setting.versions:
        if os.path.relpath(version.root, settings.root).startswith(".."):
            raise UsageError(
                f"{version.workflow.name} is in {version.root}, outside of the project {settings.root}",
                hint="--real tries workflows of one project",
            )
        versions.append(make_version(tasks.workflow(version), tasks.version_root(version)))
    tasks.write()
    notes = [f"{len(tasks.unjudged):,} tasks write no ledger: containers, Rust and executors of your own"]
    return Prepared(tuple(versions), tuple(notes if tasks.unjudged else ()), frozenset(tasks.unrecorded))


def _refuse_platforms(setting: Setting) -> None:
    """UsageError for real tasks that would run on a platform: it cannot reach a sandbox on this machine."""
    placement = Placement(setting.settings.project_or_default)
    for version in setting.versions:
        for task in version.workflow.tasks:
            if placement.config(task) is not None or isinstance(task.action, CloudRunJob):
                raise UsageError(
                    f"{task.name} of {version.workflow.name} runs on a platform, which cannot reach a sandbox",
                    hint="leave out --real: stand-ins run on this machine",
                )


def _copy(source: str, target: Path) -> None:
    """Copy the project. Its virtual environment and its secrets are linked, not copied."""
    try:
        shutil.copytree(
            source, target, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*_IGNORED, ".env")
        )
        if os.path.isdir(os.path.join(source, ".venv")):
            (target / ".venv").symlink_to(os.path.join(source, ".venv"))
        secrets = os.path.join(source, ".ork", "secrets")
        if os.path.isdir(secrets):
            (target / ".ork").mkdir()
            (target / ".ork" / "secrets").symlink_to(secrets)
    except (OSError, shutil.Error) as error:
        raise UsageError(f"the project cannot be copied: {error}") from error


def _written_keys(root: str) -> dict[str, Any]:
    """The keys of the project's ork.yaml that real tasks may need, as they are written there."""
    from ork.definition.report import ProblemReport
    from ork.definition.values import json_constant
    from ork.definition.yaml_tree import parse_yaml

    path = os.path.join(root, "ork.yaml")
    if not os.path.isfile(path):
        return {}
    with open(path, "rb") as file:
        tree = parse_yaml(file.read(), ProblemReport(path))
    written = {} if tree is None or tree.value is None else json_constant(tree)
    return {name: value for name, value in written.items() if name in _KEPT_KEYS}


def _write_project(sandbox: Sandbox, keys: Mapping[str, Any]) -> None:
    (sandbox.project / "ork.yaml").write_text(json.dumps(keys))


def _moved(path: str | None, root: str, project: Path) -> str | None:
    """The same path in the copy; unchanged if it is outside of the project."""
    if path is None or os.path.relpath(path, root).startswith(".."):
        return path
    return str(project / os.path.relpath(path, root))
