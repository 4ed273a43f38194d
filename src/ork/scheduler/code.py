"""A hash of a task's code: its own file, and every Python file of the project that it might import."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ork.model.digest import sha256
from ork.model.trees import member_of
from ork.model.workflow import Command, Const, Custom, PythonCall, RustProgram, TaskSpec, Version
from ork.scheduler.specs import paths_in_place
from ork.source_code.rules import SKIPPED_FOLDERS

MAX_FILES = 5000


def code_hash(version: Version, spec: TaskSpec) -> str:
    digest = sha256()
    for path in sorted(set(_files(version, spec))):
        digest.update(os.path.relpath(path, version.root).encode() + b"\0")
        try:
            with open(path, "rb") as file:
                digest.update(sha256(file.read()).digest())
        except OSError:
            digest.update(b"-")
    return digest.hexdigest()


def _files(version: Version, spec: TaskSpec) -> Iterator[str]:
    root = version.root
    if spec.image is not None:
        return  # the image contains the code
    if spec.environment is not None and spec.environment.requirements_file is not None:
        yield os.path.join(root, spec.environment.requirements_file)
    match spec.action:
        case PythonCall(file=file):
            if file is not None:
                yield os.path.join(root, file)
            yield from _importable(version, spec)
        case Command(argv):
            paths = (os.path.join(root, str(argument.value)) for argument in argv if isinstance(argument, Const))
            yield from (path for path in paths if os.path.isfile(path))
        case Custom(task=task):
            yield from _importable(version, spec)
            named = member_of(task, "file")
            if named is not None and isinstance(named.get("const"), str):
                yield os.path.join(root, named["const"])
        case RustProgram(path):
            full_path = os.path.join(root, path)
            yield from _below(full_path, ".rs") if os.path.isdir(full_path) else [full_path]


def _importable(version: Version, spec: TaskSpec) -> Iterator[str]:
    """The Python files in the workflow's folder, the project's and those of `pythonpath`."""
    for folder in (version.root, *paths_in_place(version, spec)):
        yield from _below(folder, ".py")


def _below(folder: str, ending: str) -> Iterator[str]:
    found = 0
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS]
        for name in files:
            if name.endswith(ending) and found < MAX_FILES:
                found += 1
                yield os.path.join(parent, name)
