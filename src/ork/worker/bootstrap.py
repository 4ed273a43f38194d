"""The file an executor starts: `python -S -E bootstrap.py OBJECTS_URL SPEC_KEY [POSITION]`, in the user's interpreter.

Makes only the `ork` package importable, so that other packages in its folder (those of another environment) do not come
onto the user's import path.
"""

from __future__ import annotations

import os
import sys


def _start() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 - an environment of the user's may be older
        sys.stderr.write(f"{sys.executable} has Python {sys.version.split()[0]}; tasks need 3.11 or later\n")
        return 3
    # Remove the script's own folder, which the interpreter adds: its files would shadow the user's modules.
    del sys.path[0]
    home = __file__.rsplit("/", 3)[0]
    sys.path.append(home)
    import ork  # noqa: F401

    sys.path.remove(home)
    if sys.argv[1].startswith("ork.worker."):
        from importlib import import_module

        code: int = import_module(sys.argv[1]).start(*sys.argv[2:])
        return code
    from ork.worker.main import perform

    return perform(*sys.argv[1:])


# Guarded: `multiprocessing` may load the main file again in the processes it starts.
if __name__ == "__main__":
    # Skips the interpreter's clean-up, which would only delay the exit.
    os._exit(_start())
