"""The nodes of a dbt project as tasks, with the dependencies that dbt reports."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ork.definition.problems import quoted
from ork.definition.report import ProblemReport
from ork.definition.tasks import ParsedTask
from ork.definition.workflow_file import ParsedImport, ParsedWorkflow
from ork.model.workflow import Command, Const, Environment, TaskSpec

# Where tasks keep what dbt writes, below the folder of the project: each its own folder, and what the parser keeps for all.
PARSED_INTO = "target/ork"
# Each task would send usage statistics, and write a description of the whole project.
_VARIABLES = (("DBT_SEND_ANONYMOUS_USAGE_STATS", Const("False")), ("DBT_WRITE_JSON", Const("False")))
_MAX_NAME = 128
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_.-]+")
_VERBS = {"model": "run", "seed": "seed", "snapshot": "snapshot", "test": "test"}


class DbtNode(NamedTuple):
    """One node of the project's graph. `is_built` is false for nodes that were not selected or build nothing themselves
    (ephemeral models); tasks then depend on the nodes upstream of them."""

    id: str
    kind: str
    name: str
    package: str
    fqn: tuple[str, ...]
    depends_on: tuple[str, ...] = ()
    is_built: bool = True


class ImportFailedError(Exception):
    """The message says why the project could not be read, and what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


# Reads a project's nodes. Raises ImportFailedError.
ReadNodes: TypeAlias = Callable[[ParsedImport], Sequence[DbtNode]]
Exists: TypeAlias = Callable[[str], bool]


def add_imported(parsed: ParsedWorkflow, read_nodes: ReadNodes | None, exists: Exists, report: ProblemReport) -> bool:
    """Add the tasks of all imports to the workflow; False if an import could not be read."""
    is_whole = True
    for entry in parsed.imports:
        place = entry.node.get("dbt") or entry.node
        try:
            if read_nodes is None:
                raise ImportFailedError("imports are not supported here")
            tasks = imported_tasks(entry, read_nodes(entry), exists)
        except ImportFailedError as error:
            report.add("ORK508", str(error), place, hint=error.hint)
            is_whole = False
            continue
        for spec in tasks:
            if spec.name in parsed.tasks:
                message = f"the import has a task {quoted(spec.name)}, and so has this workflow"
                report.add("ORK508", message, place, hint="give the import a `prefix: dbt_`")
            else:
                parsed.tasks[spec.name] = ParsedTask(spec, place, entry.node, is_complete=True)
    return is_whole


def imported_tasks(entry: ParsedImport, nodes: Sequence[DbtNode], exists: Exists) -> list[TaskSpec]:
    graph = _Graph(nodes)
    names = _names(graph.tasks, entry.prefix)
    fields = _fields(entry, exists)
    profiles = entry.profiles_dir or (entry.dbt if exists(f"{entry.dbt}/profiles.yml") else None)
    return [
        TaskSpec(
            names[node.id],
            "process",
            _command(entry, node, graph.verb(node), profiles, names[node.id]),
            depends_on=tuple(names[upstream] for upstream in graph.upstream(node)),
            **fields,
        )
        for node in graph.tasks
    ]


class _Graph:
    """A test of one node runs together with it. A test of several nodes is a task downstream of all of them."""

    def __init__(self, nodes: Sequence[DbtNode]) -> None:
        self._nodes = {node.id: node for node in nodes}
        built = [node for node in nodes if node.is_built and node.kind in _VERBS]
        self._with_tests: set[str] = set()
        self.tasks: list[DbtNode] = []
        self._upstream: dict[str, list[str]] = {}
        for node in built:
            upstream = self._nearest_built(node)
            if node.kind == "test" and len(upstream) == 1:
                self._with_tests.update(upstream)
            else:
                self.tasks.append(node)
                self._upstream[node.id] = upstream

    def upstream(self, node: DbtNode) -> list[str]:
        return self._upstream[node.id]

    def verb(self, node: DbtNode) -> str:
        return "build" if node.id in self._with_tests else _VERBS[node.kind]

    def _nearest_built(self, node: DbtNode) -> list[str]:
        """Its nearest upstream nodes that are built, without duplicates, in source order."""
        found: dict[str, None] = {}
        waiting = list(reversed(node.depends_on))
        seen: set[str] = set()
        while waiting:
            upstream = self._nodes.get(waiting.pop())
            if upstream is None or upstream.id in seen:
                continue
            seen.add(upstream.id)
            if upstream.is_built and upstream.kind in _VERBS and upstream.kind != "test":
                found[upstream.id] = None
            else:
                waiting += reversed(upstream.depends_on)
        return list(found)


def _command(entry: ParsedImport, node: DbtNode, verb: str, profiles: str | None, name: str) -> Command:
    words = ["dbt", "--no-use-colors", "--log-level-file", "none", verb, "--select", f"fqn:{'.'.join(node.fqn)}"]
    if verb == "build":
        # Only the tests of this node; tests of several nodes are tasks of their own.
        words += ["--indirect-selection", "cautious"]
    words += ["--project-dir", entry.dbt]
    if profiles is not None:
        words += ["--profiles-dir", profiles]
    if entry.target is not None:
        words += ["--target", entry.target]
    # A separate folder, because several dbt processes run at once.
    words += ["--target-path", f"{PARSED_INTO}/{name}"]
    return Command(tuple(map(Const, words)))


def _fields(entry: ParsedImport, exists: Exists) -> Mapping[str, Any]:
    """The fields shared by all tasks of the import. The default dbt is that of the project's environment."""
    own = dict(entry.fields.get("env", ()))
    env = tuple((name, value) for name, value in _VARIABLES if name not in own)
    fields = {**entry.fields, "env": (*env, *own.items())}
    if "environment" not in entry.fields and exists(".venv/bin/dbt"):
        return {**fields, "environment": Environment(path=".venv")}
    return fields


def _names(nodes: Sequence[DbtNode], prefix: str) -> dict[str, str]:
    names: dict[str, str] = {}
    taken: set[str] = set()
    for node in nodes:
        name = next(name for name in _candidates(node, prefix) if name not in taken)
        taken.add(name)
        names[node.id] = name
    return names


def _candidates(node: DbtNode, prefix: str) -> Iterator[str]:
    """Yield the plain name first, then with its package, for when two packages use the same name."""
    yield _shortened(prefix + node.name)
    yield _shortened(f"{prefix}{node.package}.{node.name}")
    yield _shortened(f"{prefix}{node.id}")


def _shortened(text: str) -> str:
    name = _FORBIDDEN.sub("_", text)
    if len(name) <= _MAX_NAME:
        return name
    return f"{name[: _MAX_NAME - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def nodes_of_manifest(manifest: Mapping[str, object], selected: Collection[str] | None = None) -> list[DbtNode]:
    """The nodes of a `manifest.json`, sorted so that equal projects give equal workflows."""
    nodes = manifest.get("nodes")
    if not isinstance(nodes, dict):
        raise ImportFailedError("the manifest has no nodes", "create it again with `dbt parse`")
    return [_node(nodes[key], selected) for key in sorted(nodes) if isinstance(nodes[key], dict)]


def _node(document: dict[str, Any], selected: Collection[str] | None) -> DbtNode:
    try:
        depends_on = document.get("depends_on") or {}
        config = document.get("config") or {}
        identity = str(document["unique_id"])
        version = document.get("version")
        return DbtNode(
            id=identity,
            kind=str(document["resource_type"]),
            name=f"{document['name']}.v{version}" if version is not None else str(document["name"]),
            package=str(document["package_name"]),
            fqn=tuple(map(str, document["fqn"])),
            depends_on=tuple(map(str, depends_on.get("nodes", ()))),
            is_built=config.get("materialized") != "ephemeral" and (selected is None or identity in selected),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ImportFailedError(
            f"the manifest cannot be understood: {error!r}", "create it again with `dbt parse`"
        ) from None
