"""Executors of a project's own: a class that performs tasks, named in ork.yaml as `package.module:Class`.

It runs inside the worker's process, in the project's interpreter: isolation, heartbeat, log, timeout and cancel are as
for any task. A class needs not inherit from anything; this one says what it may have.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ork.sdk.context import Context


class TaskExecutor:
    """`TaskConfig`, if there is one (a dataclass, TypedDict, named tuple or pydantic model), is the shape of a task's
    `config`: it is checked and converted, and unknown keys are refused. Without one `config` is what was written.
    """

    TaskConfig: Any = None

    def __init__(self, config: Any) -> None:
        """`config` is what ork.yaml says, None if it says nothing; an annotation on it is converted to and checked."""
        self.config = config

    def run(self, context: Context, config: Any, inputs: dict[str, Any]) -> Any:  # noqa: ARG002 - for those who inherit
        """Performs the task and returns its output; what it raises fails the attempt. May be async.

        `inputs` are the task's inputs, or where it has none the outputs of the tasks before it, by name.
        Returning `ork.defer(…)` hands over to external jobs.
        """
        raise TypeError(f"{type(self).__name__} has no method `run`")

    def stop(self, context: Context) -> None:
        """The attempt is being cancelled or has timed out: called in the middle of `run`, which ends after it."""
