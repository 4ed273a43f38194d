"""Finds the user's function, in a file or in a module, and notices when a file changed."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType, ModuleType
    from typing import Any


class Ready:
    """A compiled file of the user that has not run yet."""

    __slots__ = ("code", "file", "module", "name", "package", "path", "root", "source")

    def __init__(self, root: str, file: str, paths: Sequence[str], path: str, source: bytes) -> None:
        self.root = root
        self.file = file
        self.path = path
        self.source = source
        # Not from cached bytecode: it is matched by a modification time in seconds, and a person who fixes a task and
        # retries it can be faster than that.
        self.code: CodeType = compile(source, path, "exec", dont_inherit=True)
        self.name, self.package = _module_name(root, path, paths)
        self.module = None if self.package else _new_module(self.name, path)

    def run(self) -> ModuleType:
        """Run the module once. Its package, which may contain any user code, is imported first."""
        module = self.module
        if module is None:
            from importlib import import_module

            import_module(str(self.package))
            module = _new_module(self.name, self.path)
        # Before it runs: dataclasses and pickle look up their module by name.
        sys.modules[self.name] = module
        exec(self.code, module.__dict__)
        return module


_ready: Ready | None = None


class LoadError(Exception):
    """The reason why the function cannot be loaded, as a sentence. Exceptions of the user's own module are not
    caught."""


def load_function(
    root: str, file: str | None, module: str | None, function: str, paths: Sequence[str] = ()
) -> Callable[..., Any]:
    loaded = load_file(root, file, paths) if file is not None else _import_module(str(module))
    return function_of(loaded, file, module, function)


def function_of(loaded: ModuleType, file: str | None, module: str | None, function: str) -> Callable[..., Any]:
    found: Any = loaded
    for part in function.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise LoadError(f"{file or module} has no function `{function}`{_suggestion(loaded, function)}")
    if not callable(found):
        raise LoadError(f"`{function}` in {file or module} is not a function")
    return found  # type: ignore[no-any-return]


def make_ready(root: str, file: str, paths: Sequence[str] = ()) -> None:
    """Compile the file before processes are forked. If that fails or prints a warning, each process compiles it again,
    so that the output goes to the task's log."""
    global _ready
    path, written = _path(root, file), _WriteDetector()
    before, _ready = _ready, None
    errors, sys.stderr = sys.stderr, written
    try:
        source = _source(path)
        is_same = before is not None and (before.root, before.file, before.source) == (root, file, source)
        made = before if is_same else Ready(root, file, paths, path, source)
    except Exception:
        return
    finally:
        sys.stderr = errors
    _ready = None if written.is_used else made


class _WriteDetector:
    """A stream that only records whether something was written."""

    is_used = False

    def write(self, _text: str) -> None:
        self.is_used = True

    def flush(self) -> None:
        return


def _path(root: str, file: str) -> str:
    return os.path.normpath(os.path.join(root, file))


def _source(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.readall()


def _import_module(name: str) -> ModuleType:
    from importlib import import_module

    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        # Only for the module itself. A missing module that it imports is reported with a traceback, as the user's
        # error.
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise LoadError(f"there is no module `{error.name}`") from None
        raise


def load_file(root: str, file: str, paths: Sequence[str] = ()) -> ModuleType:
    """Load the file as a module and run it once. LoadError if it does not exist."""
    ready = _ready if _ready is not None and _ready.file == file and _ready.root == root else None
    path = _path(root, file) if ready is None else ready.path
    try:
        source = _source(path)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise LoadError(f"there is no file {file} in {root}") from None
    if ready is None or ready.source != source:
        if not file.endswith(".py"):
            raise LoadError(f"{file} is not a Python file")
        ready = Ready(root, file, paths, path, source)
    return ready.run()


def _new_module(name: str, path: str) -> ModuleType:
    """A new module like that of `importlib.util.module_from_spec`, which takes 20 times as long to import."""
    from importlib.machinery import ModuleSpec, SourceFileLoader

    loader = SourceFileLoader(name, path)
    spec = ModuleSpec(name, loader, origin=path)
    spec.has_location = True
    module = type(sys)(name)
    module.__spec__, module.__loader__, module.__package__ = spec, loader, spec.parent
    module.__file__ = path
    return module


def _module_name(root: str, path: str, paths: Sequence[str]) -> tuple[str, str | None]:
    """The name by which the project's own code would import the file, and its package if it has one.

    A file whose name is not an identifier, or is that of a module of the standard library, gets a name of its own.
    """
    folder = next((each for each in (root, *paths) if path.startswith(each + "/")), None)
    inner = path[len(folder) + 1 :] if folder is not None else os.path.relpath(path, root)
    parts = inner.removesuffix(".py").split("/")
    if not all(part.isidentifier() for part in parts) or parts[0] in sys.stdlib_module_names:
        return "ork_task_" + "".join(c if c.isalnum() else "_" for c in parts[-1]), None
    name = ".".join(parts)
    is_packaged = len(parts) > 1 and os.path.isfile(os.path.join(os.path.dirname(path), "__init__.py"))
    return name, name.rpartition(".")[0] if is_packaged else None


def _suggestion(module: ModuleType, function: str) -> str:
    from difflib import get_close_matches

    names = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
    close = get_close_matches(function, names, n=1)
    return f": did you mean `{close[0]}`?" if close else ""


def time_of(file: str) -> int | None:
    """The file's modification time in nanoseconds; None if there is no such file."""
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return None
