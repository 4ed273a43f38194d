"""Compares two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ork.cli.paint import Line, Span, line, visible
from ork.cli.tables import table
from ork.errors import DocumentError, ObjectsError
from ork.status.formatting import duration

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.model.task import StoredOutput

OUTPUT_LIMIT = 16 * 1024 * 1024
SHOWN = 60


async def read_difference(installation: Installation, a: str, b: str) -> dict[str, Any]:
    from ork.status.diff import diff_runs
    from ork.status.ids import resolve_run
    from ork.status.run_view import open_view
    from ork.status.secret_masking import masked_output

    store = installation.store
    one, other = [(await open_view(store, await resolve_run(store, named)))[0] for named in (a, b)]

    def read(output: StoredOutput) -> bytes | None:
        (data,) = installation.objects.read_values([output.key], OUTPUT_LIMIT)
        if isinstance(data, DocumentError):
            return f"{output.size} bytes".encode()
        if isinstance(data, ObjectsError):
            raise data
        return None if data is None else masked_output(other.hidden, masked_output(one.hidden, data))

    return diff_runs(one.run, one.tasks.values(), other.run, other.tasks.values(), read)


def difference_lines(difference: dict[str, Any]) -> list[Line]:
    lines = [line(Span(f"{difference['a']}  →  {difference['b']}", "bold"))]
    for name in ("workflow", "version", "status", "trigger", "scheduled_for", "error"):
        if name in difference:
            lines.append(line(Span(f"  {name:<14}", "dim"), _arrow(difference[name])))
    for name, pair in difference["params"].items():
        lines.append(line(Span(f"  {'param ' + name:<14}", "dim"), _arrow(pair)))
    lines.append(line(Span(f"  {'took':<14}", "dim"), _times(difference["seconds"])))
    rows = [_task_row(task) for task in difference["tasks"]]
    return [*lines, *table(("task", "state", "took", "what else differs"), rows)]


def _task_row(task: dict[str, Any]) -> tuple[str, ...]:
    name = task["name"] if task["index"] is None else f"{task['name']}[{task['index']}]"
    else_ = [f"{what} {_arrow(task[what])}" for what in ("attempts", "error", "output") if what in task]
    return name, _arrow(task["status"]) if "status" in task else "=", _times(task["seconds"]), "; ".join(else_)


def _times(seconds: dict[str, float | None]) -> str:
    return " → ".join("–" if value is None else duration(value) for value in seconds.values())


def _arrow(pair: dict[str, Any]) -> str:
    return " → ".join(_short(value) for value in pair.values())


def _short(value: Any) -> str:
    text = "–" if value is None else visible(str(value))
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
