"""Files of the user's that are named like modules of the standard library, and so take their place."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

# What the worker may need once the user's folder is first on the import path, and what nearly everything imports.
_NEEDED = ("importlib.machinery", "dataclasses", "difflib", "linecache", "traceback", "typing")
_MOST_LINKS = 5


def hidden_modules(root: str) -> dict[str, str]:
    """Names of standard modules, and the file in the root that is found instead of each."""
    try:
        names = os.listdir(root)
    except OSError:
        return {}
    found = {}
    for name in names:
        module = name.removesuffix(".py")
        if module not in sys.stdlib_module_names or module in sys.builtin_module_names:
            continue
        if module != name:
            found[module] = name
        elif os.path.isfile(f"{root}/{name}/__init__.py"):
            found[module] = f"{name}/__init__.py"
    return found


def import_before_hidden(root: str, paths: Sequence[str] = ()) -> None:
    """Whatever the user's files are called, a task can be started, and its failure told."""
    if not any(hidden_modules(folder) for folder in (root, *paths)):
        return
    from importlib import import_module

    for name in _NEEDED:
        import_module(name)


def blamed_on_hidden(error: BaseException, root: str, paths: Sequence[str] = ()) -> str | None:
    """A sentence, if the error came of a standard module that a file of the user's stands in for."""
    return next(filter(None, (_blamed(error, folder) for folder in (root, *paths))), None)


def _blamed(error: BaseException, root: str) -> str | None:
    hidden = hidden_modules(root)
    if not hidden:
        return None
    for _ in range(_MOST_LINKS):
        for name in (_module_missed(error), _module_loaded(error, hidden, root)):
            if name in hidden:
                return f"{hidden[name]} in {root} hides the standard module `{name}`: rename it"
        before = error.__cause__ or error.__context__
        if before is None:
            return None
        error = before
    return None


def _module_missed(error: BaseException) -> str | None:
    """The module in which something was looked for in vain."""
    if isinstance(error, ImportError):
        return (error.name or "").partition(".")[0]
    if isinstance(error, AttributeError) and isinstance(error.obj, type(sys)):
        return str(error.obj.__name__)
    return None


def _module_loaded(error: BaseException, hidden: dict[str, str], root: str) -> str | None:
    """The module that somebody else than the user's own code tried to import, and that raised."""
    files = {os.path.join(root, file): name for name, file in hidden.items()}
    if isinstance(error, SyntaxError) and error.filename in files:
        return files[error.filename]
    is_foreign = False
    for file in _files(error.__traceback__):
        if file in files and is_foreign:
            return files[file]
        is_foreign = is_foreign or not (file.startswith((root + "/", "<frozen")) or "/ork/worker/" in file)
    return None


def _files(trace: TracebackType | None) -> Iterator[str]:
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename
        trace = trace.tb_next
