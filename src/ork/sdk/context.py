"""The context of a task: get it by naming a parameter `ctx` or annotating it `ork.Context`."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def _field(value: object) -> str:
    """The value of a log field: numbers, booleans and None as JSON; plain words unchanged; anything else as JSON text."""
    import json

    if value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value)
    if isinstance(value, (dict, list, tuple)):
        try:
            return json.dumps(value, separators=(",", ":"))
        except (TypeError, ValueError):
            return json.dumps(str(value))
    text = str(value)
    is_word = text.isascii() and text[:1].isalpha() and all(c.isalnum() or c in "-_./:@" for c in text)
    return text if is_word and text not in ("null", "true", "false", "NaN", "Infinity") else json.dumps(text)


class TaskLog:
    """Writes lines to the attempt's log. Messages take `%` arguments like `logging`, and named fields:
    `ctx.log.info("loaded", rows=12)` writes `INFO loaded rows=12`, and `ork logs --json` has `rows` as a field."""

    def debug(self, message: object, /, *args: object, **fields: object) -> None:
        self._write("DEBUG", message, args, fields)

    def info(self, message: object, /, *args: object, **fields: object) -> None:
        self._write("INFO", message, args, fields)

    def warning(self, message: object, /, *args: object, **fields: object) -> None:
        self._write("WARNING", message, args, fields)

    def error(self, message: object, /, *args: object, **fields: object) -> None:
        self._write("ERROR", message, args, fields)

    def exception(self, message: object, /, *args: object, **fields: object) -> None:
        """Like `error`, with the traceback of the current exception."""
        import traceback

        self._write("ERROR", message, args, fields)
        sys.stderr.write(traceback.format_exc())

    def _write(self, level: str, message: object, args: tuple[object, ...], fields: dict[str, object]) -> None:
        text = str(message) % args if args else str(message)
        if fields:
            text = " ".join([text, *(f"{name}={_field(value)}" for name, value in fields.items())])
        # Earlier prints must come first in the log.
        sys.stdout.flush()
        sys.stderr.write(f"{level} {text}\n")
        sys.stderr.flush()


class Metrics:
    """Numbers about this attempt, stored with its result: `ctx.metrics.set("rows", 12)`, `ctx.metrics.incr("retries")`."""

    MAX_NAMES = 1000

    def __init__(self) -> None:
        self._values: dict[str, float] = {}

    def set(self, name: str, value: float) -> None:
        if not isinstance(name, str) or not 0 < len(name) <= 200:
            raise ValueError("a metric's name is text of 1 to 200 characters")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value - value != 0:
            raise ValueError(f"metric {name}: {value!r} is not a finite number")
        if name not in self._values and len(self._values) >= self.MAX_NAMES:
            raise ValueError(f"more than {self.MAX_NAMES} metrics")
        self._values[name] = value

    def incr(self, name: str, by: float = 1) -> None:
        self.set(name, self._values.get(name, 0) + by)

    def __setitem__(self, name: str, value: float) -> None:
        self.set(name, value)

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def as_dict(self) -> dict[str, float]:
        return dict(self._values)


class Context:
    """`attempt` starts at 1; the parallel fields are None for a task without instances. `scheduled_for` is RFC 3339.

    `upstream_states` has the status of each upstream task, for tasks that run even after failures.
    """

    __slots__ = (
        "attempt",
        "log",
        "metrics",
        "parallel_count",
        "parallel_index",
        "params",
        "run_id",
        "scheduled_for",
        "task_id",
        "task_name",
        "upstream_states",
        "workflow_name",
    )

    def __init__(
        self,
        *,
        task_id: str = "local/task/0",
        run_id: str = "local",
        task_name: str = "task",
        workflow_name: str = "workflow",
        attempt: int = 1,
        parallel_index: int | None = None,
        parallel_count: int | None = None,
        scheduled_for: str | None = None,
        params: dict[str, Any] | None = None,
        upstream_states: dict[str, str] | None = None,
    ) -> None:
        self.task_id = task_id
        self.run_id = run_id
        self.task_name = task_name
        self.workflow_name = workflow_name
        self.attempt = attempt
        self.parallel_index = parallel_index
        self.parallel_count = parallel_count
        self.scheduled_for = scheduled_for
        self.params = params or {}
        self.upstream_states = upstream_states or {}
        self.log = TaskLog()
        self.metrics = Metrics()

    @property
    def failed(self) -> list[str]:
        """The upstream tasks that did not succeed."""
        return [name for name, state in self.upstream_states.items() if state != "success"]
