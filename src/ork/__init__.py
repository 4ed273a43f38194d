"""Ork: your functions stay plain, Ork runs them, and nothing runs when nothing is due.

The names a user imports, loaded when first used, so that `import ork` inside a task costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # not from `typing`: importing that would double a worker's start time
if TYPE_CHECKING:
    from ork.errors import OrkError
    from ork.sdk.context import Context
    from ork.sdk.errors import TaskError

__all__ = ["Context", "OrkError", "TaskError"]
__version__ = "0.1.0"

_HOMES = {"Context": "ork.sdk.context", "TaskError": "ork.sdk.errors", "OrkError": "ork.errors"}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ork' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)
