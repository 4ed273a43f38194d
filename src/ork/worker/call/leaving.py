"""Ending a process that has called a function: what the interpreter does at exit, without its clean-up of memory.

`threading` and `atexit` have no public names for these two steps.
"""

from __future__ import annotations

import sys


def finish_as_the_interpreter_would() -> None:
    """Waits for the task's threads and runs its exit functions."""
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        if "atexit" in sys.modules:  # else nobody has anything done at the end
            sys.modules["atexit"]._run_exitfuncs()
    except BaseException:
        sys.excepthook(*sys.exc_info())


def flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue
