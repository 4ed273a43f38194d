"""Sets up imports like a regular start of the interpreter: site-packages, `.pth` files, `sitecustomize`. Done once.

A fork server does it for all its workers, if a trial in a child shows that it is safe to fork afterwards. Files of the user that
have the name of a standard module must not be imported in its place by our own code.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from types import TracebackType


# Packages whose native threads survive a fork: their libraries (OpenBLAS, MKL, Rayon, Arrow) start these threads again in the
# child, or with the first call. `ork bench pandas`, `polars` and `pyarrow` use them after the fork. Others are added once tried.
FORK_SAFE = frozenset({"numpy", "polars", "pyarrow"})
TRIAL_SECONDS = 2.0
_SIGKILL = 9
_is_done = False


def use_packages() -> None:
    """Set up packages, unless the process that this one was forked from has done so."""
    global _is_done
    if _is_done:
        return
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    import site

    site.main()
    _is_done = True


def are_used() -> bool:
    return _is_done


class Trial:
    """Sets up packages in a child, to see whether that starts threads or opens files, which a fork would lose or share.
    Runs in parallel with the caller."""

    def __init__(self) -> None:
        self._pid = os.fork()
        if self._pid == 0:
            code = 1
            try:
                before = os.listdir("/proc/self/fd")
                use_packages()
                is_harmless = len(os.listdir("/proc/self/task")) == 1 and os.listdir("/proc/self/fd") == before
                code = 0 if is_harmless else 1
            finally:
                os._exit(code)

    def is_passed(self) -> bool:
        """Wait for the child, for a limited time. True if forking is safe."""
        return _ended_well(self._pid)


class PackageFingerprint:
    """The folders and files that packages come from. If one of them changes, a process set up before is outdated."""

    def __init__(self) -> None:
        self._folders = [folder for folder in sys.path if os.path.isdir(folder)]
        self._entries = self._list()
        # Files that are added or removed change the folder's own modification time.
        settings = [f"{folder}/{name}" for folder, name, *_ in self._entries if str(name).endswith(".pth")]
        self._paths = [*self._folders, *sorted(settings)]
        self._times = self._look()

    def is_current(self) -> bool:
        """The folders are listed only if their times have changed: a first import adds `__pycache__`, which changes nothing else."""
        times = self._look()
        if times == self._times:
            return True
        if not times or self._list() != self._entries:
            return False
        self._times = times
        return True

    def _look(self) -> list[int]:
        try:
            return [os.stat(path).st_mtime_ns for path in self._paths]
        except OSError:
            return []

    def _list(self) -> set[tuple[object, ...]]:
        """All entries but `__pycache__`. A package's folder is known by its number, because caches in it change its time."""
        found: set[tuple[object, ...]] = set()
        for folder in self._folders:
            try:
                for entry in os.scandir(folder):
                    facts = entry.stat(follow_symlinks=False)
                    is_package = entry.is_dir() and "-info" not in entry.name
                    if entry.name != "__pycache__":
                        found.add((folder, entry.name, facts.st_ino, 0 if is_package else facts.st_mtime_ns))
            except OSError:
                continue
        return found


def _ended_well(pid: int) -> bool:
    give_up_at = time.monotonic() + TRIAL_SECONDS
    while time.monotonic() < give_up_at:
        # Not `waitpid`: processes forked later use `wait4`, and what its first call loads is then already there.
        ended, status, _ = os.wait4(pid, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.001)
    os.kill(pid, _SIGKILL)
    os.waitpid(pid, 0)
    return False


# Modules that the worker may import after the user's folder is first on the import path, and common ones.
_NEEDED = ("importlib.machinery", "dataclasses", "difflib", "linecache", "traceback", "typing")
_MOST_LINKS = 5


def hidden_modules(root: str, modules: Collection[str] = sys.stdlib_module_names) -> dict[str, str]:
    """Those of the modules (default: all standard ones) that a file in the root shadows, each with that file."""
    try:
        names = os.listdir(root)
    except OSError:
        return {}
    found = {}
    for name in names:
        module = name.removesuffix(".py")
        if module not in modules or module in sys.builtin_module_names:
            continue
        if module != name:
            found[module] = name
        elif os.path.isfile(f"{root}/{name}/__init__.py"):
            found[module] = f"{name}/__init__.py"
    return found


def import_before_hidden(root: str, paths: Sequence[str] = ()) -> None:
    """Import modules early, so that tasks can start and report failures whatever names the user's files have."""
    if not any(hidden_modules(folder) for folder in (root, *paths)):
        return
    from importlib import import_module

    for name in _NEEDED:
        import_module(name)


def blamed_on_hidden(error: BaseException, root: str, paths: Sequence[str] = ()) -> str | None:
    """A sentence if the error was caused by a file of the user that shadows a standard module, else None."""
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
    """The module in which a name was not found."""
    if isinstance(error, ImportError):
        return (error.name or "").partition(".")[0]
    if isinstance(error, AttributeError) and isinstance(error.obj, type(sys)):
        return str(error.obj.__name__)
    return None


def _module_loaded(error: BaseException, hidden: dict[str, str], root: str) -> str | None:
    """The module that raised an exception while code other than the user's imported it."""
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
