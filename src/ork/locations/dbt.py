"""Reads the nodes of a dbt project from its manifest, or runs dbt in a child process if that is out of date.

The output of dbt is cached by content: the project's files, and the selection.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ork.compile.dbt import PARSED_INTO, DbtNode, ImportFailedError, nodes_of_manifest
from ork.definition.workflow_file import ParsedImport
from ork.executors.local_worker import BOOTSTRAP
from ork.model.workflow import Const, Environment

WALL_SECONDS = 300.0
BUILD_SECONDS = 3600.0
MAX_CACHED = 50
_SHOWN_LINES = 5
_PARTIAL_PARSE = "partial_parse.msgpack"
_MAX_BYTES = 512 * 1024 * 1024
_SOURCES = (".sql", ".yml", ".yaml", ".csv", ".py", ".md")
_SKIPPED_FOLDERS = frozenset({"target", "logs", "dbt_packages", "dbt_modules", "__pycache__", "node_modules"})


class DbtProjects:
    """Reads projects below `root`; `cache_dir` is the folder of the cache, if any. `environments` builds environments."""

    def __init__(self, root: str, cache_dir: str | None, environments: Environments | None = None) -> None:
        self._root = root
        self._cache_dir = cache_dir
        self._environments = environments

    def __call__(self, entry: ParsedImport) -> Sequence[DbtNode]:
        folder = os.path.join(self._root, entry.dbt)
        if not os.path.isfile(os.path.join(folder, "dbt_project.yml")):
            raise ImportFailedError(f"there is no dbt project in {entry.dbt}", "name the folder of its dbt_project.yml")
        files = list(_source_files(folder))
        own = os.path.join(folder, "target", "manifest.json")
        if not entry.select and _is_fresh(own, files):
            return nodes_of_manifest(_read_json(own))
        kept = None if self._cache_dir is None else os.path.join(self._cache_dir, f"{_digest(entry, files)}.json")
        known = _read_kept(kept)
        if known is not None:
            return known
        nodes = self._ask(entry)
        _keep(kept, nodes)
        return nodes

    def _ask(self, entry: ParsedImport) -> Sequence[DbtNode]:
        program = self._program(entry)
        with tempfile.TemporaryDirectory(prefix="ork-dbt-") as scratch, self._shared_parse(entry, scratch):
            printed = self._run([program, *_arguments(entry, self._root, scratch)], entry)
            manifest = _read_json(os.path.join(scratch, "manifest.json"))
        return nodes_of_manifest(manifest, frozenset(_listed(printed)) if entry.select else None)

    @contextmanager
    def _shared_parse(self, entry: ParsedImport, scratch: str) -> Iterator[None]:
        """Let dbt parse only what has changed since it was here or in a task, and let tasks profit from it likewise."""
        shared = os.path.join(self._root, entry.dbt, PARSED_INTO, _PARTIAL_PARSE)
        with suppress(OSError):
            shutil.copyfile(shared, os.path.join(scratch, _PARTIAL_PARSE))
        yield
        with suppress(OSError):
            os.makedirs(os.path.dirname(shared), exist_ok=True)
            temporary = f"{shared}.{os.getpid()}"
            shutil.copyfile(os.path.join(scratch, _PARTIAL_PARSE), temporary)
            os.replace(temporary, shared)

    def _program(self, entry: ParsedImport) -> str:
        environment = entry.fields.get("environment")
        sources = [".venv"]
        if isinstance(environment, Environment) and environment.path is not None:
            sources.insert(0, environment.path)
        elif isinstance(environment, Environment) and not environment.script and self._environments is not None:
            sources.insert(0, os.path.dirname(os.path.dirname(self._environments.python_of(environment, entry))))
        for source in sources:
            program = os.path.join(self._root, source, "bin", "dbt")
            if os.access(program, os.X_OK):
                return program
        found = shutil.which("dbt")
        if found is None:
            hint = (
                "name it in `environment: {requirements: [dbt-core, dbt-duckdb]}`, install it in .venv or on PATH, or run"
                f" `dbt parse` in {entry.dbt} wherever it is installed"
            )
            raise ImportFailedError("dbt is not installed", hint)
        return found

    def _run(self, argv: list[str], entry: ParsedImport) -> str:
        child = subprocess.Popen(
            argv,
            cwd=self._root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            printed = child.communicate(timeout=WALL_SECONDS)[0].decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            raise ImportFailedError(f"dbt took more than {WALL_SECONDS:g} seconds to read {entry.dbt}") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        if child.returncode != 0:
            lines = [line.strip() for line in printed.splitlines() if line.strip()]
            raise ImportFailedError(f"dbt cannot read {entry.dbt}", " / ".join(lines[-_SHOWN_LINES:]) or None)
        return printed


class Environments:
    """Builds environments for tasks of a project, in a child process. `python` is the interpreter of its workers, `folder` that of
    what is built."""

    def __init__(self, python: str, root: str, folder: str) -> None:
        self._python = python
        self._root = os.path.abspath(root)
        self._folder = os.path.abspath(folder)

    def python_of(self, environment: Environment, entry: ParsedImport) -> str:
        """The interpreter of the environment, once it is built. ImportFailedError if that fails."""
        wanted: dict[str, Any] = {"requirements": list(environment.requirements)}
        if environment.requirements_file is not None:
            wanted = {"requirements_file": environment.requirements_file}
        variables = {name: value.value for name, value in entry.fields.get("env", ()) if isinstance(value, Const)}
        texts = {name: value for name, value in variables.items() if isinstance(value, str)}
        request = {"root": self._root, "builds": self._folder, "environment": wanted, "env": texts}
        answer = self._ask(request)
        if "python" not in answer:
            raise ImportFailedError(str(answer.get("problem", "the environment of dbt could not be built")))
        return str(answer["python"])

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        child = subprocess.Popen(
            [self._python, "-S", "-E", BOOTSTRAP, "ork.worker.environment"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            printed = child.communicate(json.dumps(request).encode(), timeout=BUILD_SECONDS)[0]
        except subprocess.TimeoutExpired:
            raise ImportFailedError(
                f"the environment of dbt took more than {BUILD_SECONDS:g} seconds to build"
            ) from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        try:
            return dict(json.loads(printed))
        except ValueError:
            return {}


def _arguments(entry: ParsedImport, root: str, scratch: str) -> list[str]:
    words = ["--quiet", "--no-use-colors", "--log-level-file", "none", "ls", "--output", "json"]
    words += ["--output-keys", "unique_id", "--project-dir", entry.dbt, "--target-path", scratch]
    profiles = entry.profiles_dir
    if profiles is None and os.path.isfile(os.path.join(root, entry.dbt, "profiles.yml")):
        profiles = entry.dbt
    words += ["--profiles-dir", profiles] if profiles is not None else []
    words += ["--target", entry.target] if entry.target is not None else []
    return [*words, "--select", *entry.select] if entry.select else words


def _listed(printed: str) -> Iterator[str]:
    for line in printed.splitlines():
        if line.startswith("{"):
            with suppress(ValueError):
                yield str(json.loads(line).get("unique_id"))


def _source_files(folder: str) -> Iterator[str]:
    for source, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS and not name.startswith("."))
        yield from (os.path.join(source, name) for name in sorted(names) if name.endswith(_SOURCES))


def _is_fresh(manifest: str, files: list[str]) -> bool:
    """True if no file of the project is newer than its manifest."""
    try:
        made = os.stat(manifest).st_mtime_ns
        return all(os.stat(file).st_mtime_ns <= made for file in files)
    except OSError:
        return False


def _digest(entry: ParsedImport, files: list[str]) -> str:
    whole = hashlib.sha256(repr((entry.dbt, entry.select, entry.target, entry.profiles_dir)).encode())
    for path in files:
        with open(path, "rb") as file:
            whole.update(path.encode("utf-8", "surrogateescape") + b"\0" + hashlib.sha256(file.read()).digest())
    return whole.hexdigest()[:32]


def _read_json(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            document = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError) as error:
        raise ImportFailedError(
            f"the manifest {path} cannot be read: {error}", "create it again with `dbt parse`"
        ) from None
    if not isinstance(document, dict):
        raise ImportFailedError(f"{path} is not a manifest", "create it again with `dbt parse`")
    return document


def _read_kept(path: str | None) -> list[DbtNode] | None:
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)
        os.utime(path)
        return [
            DbtNode(identity, kind, name, package, tuple(fqn), tuple(depends_on), is_built)
            for identity, kind, name, package, fqn, depends_on, is_built in rows
        ]
    except (OSError, ValueError, TypeError):
        return None


def _keep(path: str | None, nodes: Sequence[DbtNode]) -> None:
    """Write the entry atomically, and remove old ones. If that fails, dbt runs again next time."""
    if path is None:
        return
    with suppress(OSError):
        folder = os.path.dirname(path)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        temporary = f"{path}.{os.getpid()}"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(nodes, file)
        os.replace(temporary, path)
        answers = sorted(os.scandir(folder), key=lambda entry: entry.stat().st_mtime, reverse=True)
        for entry in answers[MAX_CACHED:]:
            os.unlink(entry.path)
