"""How the sources are kept: short, finished, and in their right place."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

LONGEST_FILE = 600  # where to think about splitting it by meaning
LONGEST_FUNCTION = 60

# Spelled in two parts, so that this file does not find itself.
UNFINISHED = re.compile("|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "NotImplemented" + "Error"]))
SAYS_NOTHING = {"utils", "util", "helpers", "helper", "common", "base", "misc", "manager"}
SQL = re.compile(r"^\s*(SELECT\s.+\sFROM|INSERT\s+(OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM)\s", re.S)


def python_files(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


@pytest.fixture(scope="module")
def modules(tree: Path) -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in python_files(tree / "src")}


def test_no_source_file_is_too_long_to_read(tree: Path) -> None:
    sizes = {path.relative_to(tree): len(path.read_text().splitlines()) for path in python_files(tree / "src")}
    assert {path: size for path, size in sizes.items() if size > LONGEST_FILE} == {}


def test_functions_are_short_and_sql_lives_in_sql_files(tree: Path, modules: dict[Path, ast.Module]) -> None:
    too_long, sql = [], []
    for path, module in modules.items():
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if (node.end_lineno or 0) - node.lineno + 1 > LONGEST_FUNCTION:
                    too_long.append(f"{path.relative_to(tree)}:{node.name}")
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value):
                sql.append(f"{path.relative_to(tree)}:{node.lineno}")
    assert too_long == []
    assert sql == []


def test_every_source_file_has_postponed_annotations_and_says_what_it_is(modules: dict[Path, ast.Module]) -> None:
    for path, module in modules.items():
        assert ast.get_docstring(module), f"{path} has no docstring"
        if len(module.body) > 1:
            assert "from __future__ import annotations" in path.read_text(), path


def test_nothing_is_left_unfinished(tree: Path) -> None:
    texts = [*python_files(tree / "src", tree / "tests"), *(tree / "docs").rglob("*.md"), *tree.glob("*.md")]
    assert [str(path) for path in texts if UNFINISHED.search(path.read_text())] == []


def test_modules_are_named_after_what_they_hold(tree: Path) -> None:
    assert [str(path) for path in python_files(tree / "src") if path.stem in SAYS_NOTHING] == []


# Names of several classes, by why they are the same idea, and where those classes may be.
SAME_IDEA = {
    "the same idea on two backends": (
        ("state/sqlite/", "state/postgres/", "state/firestore/"),
        ("Address", "ChangeListener", "Database", "RowChanges"),
    ),
    "the same idea on two platforms": (
        ("executors/cloud_run/", "executors/kubernetes/"),
        ("Launching", "Member", "Unit"),
    ),
    "the SDK declares what it may not import": (
        ("in_process/result.py", "sdk/workflow.py"),
        ("Result",),
    ),
    "the response of the API that shows the other one": (
        ("api/models.py", "api/page_models.py", "api/sessions.py", "api/worker_models.py", "core/", "model/", "scheduler/", "sdk/", "state/", "status/"),
        (
            "Attempt", "AuditEntry", "Code", "CodeDifference", "CodeReport", "Control", "Failure", "GroupPlace", "LimitUse", "Location", "NewSession", "OperationCost",
            "PendingApproval", "Run", "RunCost", "RunPage", "Schedule", "Scheduler", "Task", "TaskCost", "TaskSince", "TickReport",
            "Token", "UnsentAlert", "Version", "VersionEntry", "WorkerConfig", "Workflow",
        ),
    ),
}  # fmt: skip


def class_names(body: list[ast.stmt], outer: str = "") -> Iterator[str]:
    """A class inside a class bears the name of both; one inside a function or a condition its own."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield outer + node.name
            yield from class_names(node.body, f"{outer}{node.name}.")
        else:
            inner = [child for child in ast.walk(node) if isinstance(child, ast.ClassDef)]
            yield from (outer + child.name for child in inner)


def test_no_two_classes_of_one_name_for_different_ideas(tree: Path, modules: dict[Path, ast.Module]) -> None:
    files: dict[str, list[str]] = defaultdict(list)
    for path, module in modules.items():
        if path.parent.name == "copied":
            continue  # written into users' folders, with the names of the framework that they stand for
        for name in class_names(module.body):
            files[name].append(path.relative_to(tree / "src" / "ork").as_posix())
    several = {name: sorted(where) for name, where in files.items() if len(where) > 1}
    allowed: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for where, names in SAME_IDEA.values():
        for name in names:
            allowed[name] += where
    assert sorted(set(allowed) - set(several)) == [], "no longer needed on the list"
    assert {
        name: where
        for name, where in several.items()
        if not all(file.startswith(allowed.get(name, ())) for file in where)
    } == {}, "rename one of them, so that each name says whose it is"


def test_only_the_settings_read_the_environment(tree: Path) -> None:
    """Workers and whoever starts processes pass it on; nobody else looks at it, except for a bucket's own credentials."""
    may = ("settings.py", "terminal.py", "worker/", "executors/local", "bench/", "in_process/")
    may += ("objects/buckets/environment.py",)
    may += ("system/__init__.py",)  # before anything else is loaded: which system to use
    may += ("importers/copied/", "eject/copied/")  # run in projects, not in Ork
    source = tree / "src" / "ork"
    readers = [
        str(path.relative_to(source))
        for path in python_files(source)
        if re.search(r"\bos\.(environb?|getenv)\b", path.read_text())
    ]
    assert "settings.py" in readers
    assert [reader for reader in readers if not reader.startswith(may)] == []


def test_the_pure_rooms_are_told_what_time_it_is(tree: Path) -> None:
    clock = re.compile(r"\b(datetime|date)\.(now|utcnow|today)\b")
    rooms = [tree / "src" / "ork" / room for room in ("core", "compile", "model")]
    assert [str(path) for path in python_files(*rooms) if clock.search(path.read_text())] == []


def test_server_side_http_goes_through_one_package(tree: Path) -> None:
    """Workers and the SDK have only the standard library, for object stores as well. Everybody else uses the clients of `ork.outbound`."""
    own_client = re.compile(r"^\s*(import|from) (http\.client|urllib\.request|requests|urllib3)\b", re.M)
    source = tree / "src" / "ork"
    users = [str(path.relative_to(source)) for path in python_files(source) if own_client.search(path.read_text())]
    may = ("worker/", "sdk/", "objects/buckets/requests.py", "objects/served.py", "outbound/clients.py")
    may += ("importers/copied/", "eject/copied/")  # run in projects, not in Ork
    assert "outbound/clients.py" in users
    assert [user for user in users if not user.startswith(may)] == []
