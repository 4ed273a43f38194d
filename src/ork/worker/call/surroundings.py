"""Sets up a process for user code (environment, folder, standard streams, packages, import path, `logging`), and ends
it like the interpreter, but without freeing its memory.

Steps that the fork server has done for all tasks are not repeated.
"""

from __future__ import annotations

import os
import sys

from ork.worker.call import packages
from ork.worker.call.environment import set_environment
from ork.worker.call.loading import LoadError
from ork.worker.call.packages import import_before_hidden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ork.worker.call.environment import Bindings

_has_streams = _has_packages = False


def settle_in(spec: dict[str, Any], bindings: Bindings) -> None:
    """Set up everything that the spec asks for. LoadError if its folder cannot be entered."""
    set_environment(spec, bindings)
    enter_folder(spec["root"])
    if not _has_streams:
        use_streams()
    if not _has_packages:
        use_packages(spec["root"], spec["paths"])


def enter_folder(root: str) -> None:
    try:
        os.chdir(root)
    except OSError as error:
        raise LoadError(f"cannot work in {root}: {error.strerror}") from None


def use_streams() -> None:
    """Set up the standard streams: text reaches the log line by line, and unencodable characters do not raise. Done
    once."""
    global _has_streams
    if _has_streams:
        return
    _has_streams = True
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        # New streams: those of the interpreter may have been created for another file.
        stream: Any = open(  # noqa: SIM115 - stays open as long as the process lives
            descriptor, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
        )
        stream.buffer.raw.name = f"<{name}>"
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def use_packages(root: str, paths: Sequence[str] = ()) -> None:
    """Set up imports: the root, the project's `paths`, then what a regular start of this interpreter provides. Done
    once."""
    global _has_packages
    if _has_packages:
        return
    _has_packages = True
    packages.use_packages()
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    import_before_hidden(root, paths)
    extra = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:0] = [root, *paths, *extra]
    sys.argv = [""]
    # `multiprocessing` would load the main file again in its children; there is none.
    sys.modules["__main__"].__dict__.pop("__file__", None)
    sys.meta_path.insert(0, LoggingSetUp())


class LoggingSetUp:
    """Configures `logging` when the task imports it: INFO and above go to the log, unless the task configures it
    itself."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> Any:
        if name != "logging":
            return None
        sys.meta_path.remove(self)
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_set_up(module: Any) -> None:
                load(module)
                # The handler of last resort, not a root handler: `basicConfig` in the task must still work.
                module.lastResort.setLevel(module.INFO)
                module.lastResort.setFormatter(module.Formatter("%(levelname)s %(name)s: %(message)s"))
                module.root.setLevel(module.INFO)

            spec.loader.exec_module = load_and_set_up  # type: ignore[method-assign]
        return spec


def reseed() -> None:
    """Seed the global random generators of a preloaded NumPy and PyTorch again, so that no two processes share their state.
    Python's own `random` does that after every fork; Polars and Arrow have no state before they are called."""
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()
    generator = getattr(sys.modules.get("torch"), "default_generator", None)
    if generator is not None:
        generator.seed()


def finish_as_the_interpreter_would() -> None:
    """Wait for the task's threads and run its exit functions."""
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        if "atexit" in sys.modules:  # otherwise no exit function is registered
            sys.modules["atexit"]._run_exitfuncs()
    except BaseException:
        sys.excepthook(*sys.exc_info())


def flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue
