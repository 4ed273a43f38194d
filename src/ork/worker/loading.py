"""Finding the user's function, in a file or in a module."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType, ModuleType
    from typing import Any


class Ready:
    """A file, its text, and what has been made of it: its code and, outside of packages, the module that has not run yet."""

    __slots__ = ("code", "file", "globals", "module", "name", "path", "source")

    def __init__(self, file: str, path: str, source: bytes, code: CodeType, module: ModuleType | None) -> None:
        self.file = os.fsencode(file)
        self.path = path
        self.source = source
        self.code = code
        self.module = module
        self.name = module.__name__ if module is not None else ""
        self.globals = module.__dict__ if module is not None else {}

    def is_for(self, path: str, source: bytes) -> bool:
        return self.path == path and self.source == source


_ready: Ready | None = None


class LoadError(Exception):
    """A sentence saying why there is no such function. What the user's own module raises is not caught."""


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


def make_ready(root: str, file: str, paths: Sequence[str] = ()) -> Ready | None:
    """Compiles the file for processes that will be forked, unless the same text was compiled the last time.
    What cannot be done without a word is left to them, whose words are the task's."""
    global _ready
    path = _path(root, file)
    before, _ready = _ready, None
    heard = _Heard()
    errors, sys.stderr = sys.stderr, heard
    try:
        source = _source(path)
        if before is not None and before.is_for(path, source):
            made = before
        else:
            made = Ready(file, path, source, _compiled(source, path), _empty_module(root, path, paths))
    except Exception:
        return None
    finally:
        sys.stderr = errors
    _ready = None if heard.is_told else made
    return _ready


def forget_ready() -> None:
    global _ready
    _ready = None


class _Heard:
    """A stream that only remembers that there was something to say."""

    is_told = False

    def write(self, _text: str) -> None:
        self.is_told = True

    def flush(self) -> None:
        return


def _path(root: str, file: str) -> str:
    return os.path.normpath(os.path.join(root, file))


def _source(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.readall()


def _compiled(source: bytes, path: str) -> CodeType:
    # Not from its bytecode: that is told from older one by the second it was written in, and a person who mends a
    # task and tries again is quicker than that.
    return compile(source, path, "exec", dont_inherit=True)


def _import_module(name: str) -> ModuleType:
    from importlib import import_module

    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        # Only the module asked for; one that it imports is the user's own mistake, with its own traceback.
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise LoadError(f"there is no module `{error.name}`") from None
        raise


def load_file(root: str, file: str, paths: Sequence[str] = ()) -> ModuleType:
    """The file as a module, run once. LoadError if there is no such file."""
    path = _path(root, file)
    try:
        source = _source(path)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise LoadError(f"there is no file {file} in {root}") from None
    code, module = (_ready.code, _ready.module) if _ready and _ready.is_for(path, source) else (None, None)
    name, package = _module_name(root, path, paths) if module is None else (module.__name__, None)
    if package:
        from importlib import import_module

        import_module(package)
    if module is None:
        module = _new_module(name, path)
    if module is None:
        raise LoadError(f"{file} is not a Python file")
    # Before it runs: dataclasses and pickle look their module up by name.
    sys.modules[name] = module
    exec(code or _compiled(source, path), module.__dict__)
    return module


def _empty_module(root: str, path: str, paths: Sequence[str]) -> ModuleType | None:
    """Not of a package, which is the user's to load first."""
    name, package = _module_name(root, path, paths)
    return None if package else _new_module(name, path)


def _new_module(name: str, path: str) -> ModuleType | None:
    """What `importlib.util` gives, without the modules that it imports itself; None if it is not a Python file."""
    from _frozen_importlib import module_from_spec
    from _frozen_importlib_external import spec_from_file_location

    spec = spec_from_file_location(name, path)
    return None if spec is None or spec.loader is None else module_from_spec(spec)


def _module_name(root: str, path: str, paths: Sequence[str]) -> tuple[str, str | None]:
    """The name by which the project's own code would import the file, and its package if it is in one.

    A file whose name is no identifier, or would hide a module of the standard library, gets a name of its own.
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
