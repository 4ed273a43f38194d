"""The child process that inspects a Python file of the user: loads it within limits, and returns what is in it.

Runs in the project's interpreter, so that no other process imports user code. Output of the file goes where the
parent sent it; the result goes through a separate pipe, as one JSON text.
"""

from __future__ import annotations

import os
import sys

from ork.objects.json_text import dumps
from ork.system import system
from ork.worker.call.loading import LoadError, load_file
from ork.worker.call.surroundings import use_packages, use_streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any

    from ork.sdk.workflow import Workflow

CPU_SECONDS = 60
MEMORY_BYTES = 8 * 1024**3
FILE_BYTES = 256 * 1024**2  # what it prints goes into a file
MOST_FUNCTIONS = 2000
_OWN = "ORK_"


def start(parent: str, answer: str, root: str, file: str, *paths: str) -> int:
    """`parent` is the process with which this one ends, `answer` a descriptor, `file` a path seen from `root`, `paths` more
    folders to import from."""
    system.die_with_parent(int(parent))
    _limit()
    for name in [name for name in os.environ if name.startswith(_OWN)]:
        del os.environ[name]
    os.chdir(root)
    use_streams()
    use_packages(root, paths)
    # Python takes bytecode for current if size and second fit: an edit within one second would be missed. And who only
    # looks leaves nothing in the user's folder.
    sys.dont_write_bytecode = True
    os.set_inheritable(int(answer), False)
    text = dumps(look_into(root, file, paths))
    with open(int(answer), "wb", closefd=True) as pipe:
        pipe.write(text.encode() + b"\n")
    return 0


def look_into(root: str, file: str, paths: Sequence[str] = ()) -> dict[str, Any]:
    """Workflows, functions, the files of the project they came from, and what went wrong."""
    found: dict[str, Any] = {"workflows": [], "functions": {}, "files": [], "errors": []}
    try:
        module = load_file(root, file, paths)
    except LoadError as error:
        found["errors"].append({"type": "LoadError", "message": str(error), "frames": []})
    except BaseException as error:
        found["errors"].append(_described(error, root, paths))
    else:
        path = os.path.normpath(os.path.join(root, file))
        _tell_workflows(module, path, root, found)
        found["functions"] = {f"{file}:{name}": text for name, text in _functions(module).items()}
    found["files"] = _project_files(root, paths)
    return found


def _tell_workflows(module: ModuleType, path: str, root: str, found: dict[str, Any]) -> None:
    """Those made by this module, then those that they run as tasks, wherever they were made."""
    if "ork.sdk.workflow" not in sys.modules:
        return
    from ork.sdk.workflow import Workflow

    made = [value for value in vars(module).values() if isinstance(value, Workflow)]
    own = list({id(workflow): workflow for workflow in made if workflow.file == path}.values())
    waiting, seen = list(own), set()
    while waiting:
        workflow = waiting.pop(0)
        if id(workflow) in seen:
            continue
        seen.add(id(workflow))
        waiting += workflow.children()
        found["workflows"].append(_told(workflow, root, is_own=any(each is workflow for each in own)))


def _told(workflow: Workflow, root: str, is_own: bool) -> dict[str, Any]:
    return {
        "document": workflow.document(root, type_in_words),
        "file": os.path.relpath(workflow.file, root),
        "line": workflow.line,
        "task_lines": {entry.name: entry.line for entry in workflow.tasks.values()},
        "mistakes": [
            {"code": each.code, "message": each.message, "line": each.line, "hint": each.hint}
            for each in workflow.mistakes(root, type_in_words)
        ],
        "is_own": is_own,
    }


def type_in_words(annotation: Any, function: Callable[..., Any]) -> str:
    """The type of a parameter's annotation in a definition; `any` if it has none."""
    from ork.worker.convert.annotations import type_text
    from ork.worker.convert.values import resolve_annotation

    resolved = resolve_annotation(annotation, function)
    return "any" if resolved is None else type_text(resolved)


def _functions(module: ModuleType) -> dict[str, Any]:
    from ork.worker.convert.annotations import describe_function

    described: dict[str, Any] = {}
    for name, value in vars(module).items():
        if not name.startswith("_") and callable(value) and len(described) < MOST_FUNCTIONS:
            try:
                described[name] = describe_function(value)
            except Exception:
                continue  # an object that only looks like a function
    return described


def _described(error: BaseException, root: str, paths: Sequence[str]) -> dict[str, Any]:
    from ork.worker.call.failure import describe

    detail: dict[str, Any] = describe(error, root, {}, paths)["detail"]
    return {key: detail[key] for key in ("type", "message", "frames")}


def _project_files(root: str, paths: Sequence[str]) -> list[str]:
    """The project's files that were loaded, seen from the root: if one of them changes, the answer may change."""
    bases = tuple(folder.rstrip("/") + "/" for folder in (root, *paths))
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    inside = (file for file in files if isinstance(file, str) and file.startswith(bases) and file.endswith(".py"))
    return sorted(os.path.relpath(file, root) for file in inside if "/site-packages/" not in file)


def _limit() -> None:
    import resource
    from contextlib import suppress

    for kind, most in (
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_DATA, MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(ValueError, OSError):  # macOS does not accept all of them
            resource.setrlimit(kind, (wanted, hard))
