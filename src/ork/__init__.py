"""Ork: your functions stay plain, Ork runs them, and nothing runs when nothing is due.

The names a user imports, loaded when first used, so that `import ork` inside a task costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # not from `typing`: importing that would double a worker's start time
if TYPE_CHECKING:
    from ork.errors import OrkError
    from ork.sdk.context import Context
    from ork.sdk.defer import Deferred, call_job, defer, http_job
    from ork.sdk.errors import TaskError
    from ork.sdk.executor import TaskExecutor
    from ork.sdk.files import File, Table
    from ork.sdk.values import ref, secret
    from ork.sdk.workflow import Workflow

__all__ = [
    "Context",
    "Deferred",
    "File",
    "OrkError",
    "Table",
    "TaskError",
    "TaskExecutor",
    "Workflow",
    "call_job",
    "defer",
    "http_job",
    "ref",
    "secret",
]
__version__ = "0.2.0.dev0"

_HOMES = {
    "Context": "ork.sdk.context",
    "Deferred": "ork.sdk.defer",
    "File": "ork.sdk.files",
    "OrkError": "ork.errors",
    "Table": "ork.sdk.files",
    "TaskError": "ork.sdk.errors",
    "TaskExecutor": "ork.sdk.executor",
    "Workflow": "ork.sdk.workflow",
    "call_job": "ork.sdk.defer",
    "defer": "ork.sdk.defer",
    "http_job": "ork.sdk.defer",
    "ref": "ork.sdk.values",
    "secret": "ork.sdk.values",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ork' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)
