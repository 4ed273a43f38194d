"""Custom executors: a class that performs tasks, named in ork.yaml as `package.module:Class`.

It runs inside the worker's process, in the project's interpreter. Isolation, heartbeat, log, timeout and cancellation
are the same as for any task. A class need not inherit from this one, which shows what it may define.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ork.sdk.context import Context


class TaskExecutor:
    """`TaskConfig`, if defined (a dataclass, TypedDict, named tuple or pydantic model), is the type of a task's
    `config`: it is checked and converted, and unknown keys are rejected. Without it `config` is passed unchanged."""

    TaskConfig: Any = None

    def __init__(self, config: Any) -> None:
        """`config` is the one in ork.yaml, or None. If it is annotated, it is checked and converted."""
        self.config = config

    def run(self, context: Context, config: Any, inputs: dict[str, Any]) -> Any:  # noqa: ARG002 - for those who inherit
        """Perform the task and return its output; an exception fails the attempt. May be async.

        `inputs` are the task's inputs, or if it has none, the outputs of its upstream tasks by name.
        Return `ork.defer(…)` to wait for external jobs.
        """
        raise TypeError(f"{type(self).__name__} has no method `run`")

    def stop(self, context: Context) -> None:
        """Called during `run` when the attempt is cancelled or has timed out; `run` is ended afterwards."""
