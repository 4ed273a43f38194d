"""Compares two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ork.cli.paint import Line, Span, line, visible
from ork.cli.tables import table
from ork.status.formatting import duration

if TYPE_CHECKING:
    from ork.app.installation import Installation

SHOWN = 60


async def read_difference(installation: Installation, a: str, b: str | None) -> dict[str, Any]:
    """The differences; without `b`, between the last success before `a`, and `a`."""
    from ork.errors import NotFoundError
    from ork.status.compare import Bounds, compare_runs, previous_success
    from ork.status.ids import resolve_run

    store = installation.store
    first = await resolve_run(store, a)
    if b is not None:
        return await compare_runs(store, installation.objects, first, await resolve_run(store, b), Bounds())
    run = await store.get_run(first)
    before = None if run is None else await previous_success(store, run)
    if before is None:
        raise NotFoundError(f"no run of this workflow succeeded before {a}", hint="name two runs")
    return await compare_runs(store, installation.objects, before.id, first, Bounds())


def difference_lines(difference: dict[str, Any]) -> list[Line]:
    lines = [line(Span(f"{difference['a']}  →  {difference['b']}", "bold"))]
    for name in ("workflow", "version", "status", "trigger", "scheduled_for", "error"):
        if name in difference:
            lines.append(line(Span(f"  {name:<14}", "dim"), _arrow(difference[name])))
    for name, pair in difference["params"].items():
        lines.append(line(Span(f"  {'param ' + name:<14}", "dim"), _arrow(pair)))
    lines.append(line(Span(f"  {'took':<14}", "dim"), _times(difference["seconds"])))
    lines += definition_lines(difference["definition"]) + _code_lines(difference.get("code"))
    rows = [_task_row(task) for task in difference["tasks"]]
    logs = [each for task in difference["tasks"] if task.get("log") for each in _log_lines(task)]
    return [*lines, *table(("task", "state", "took", "what else differs"), rows), *logs]


def definition_lines(definition: dict[str, Any] | None) -> list[Line]:
    if definition is None:
        return []
    parts = [f"+ {name}" for name in definition["added"]] + [f"- {name}" for name in definition["removed"]]
    parts += [f"~ {name} ({', '.join(keys)})" for name, keys in definition["changed"].items()]
    parts += [f"~ {key}" for key in definition["keys"]]
    return [line(Span(f"  {'definition':<14}", "dim"), part) for part in parts]


def _code_lines(code: dict[str, Any] | None) -> list[Line]:
    if code is None:
        return []
    from ork.status.code_report import commit_name, difference_text

    commits = [code[side] and commit_name(code[side]["commit"], code[side]["dirty"]) for side in ("a", "b")]
    is_known = code["a"] is not None and code["b"] is not None
    lines = [visible(difference_text(code)) if is_known else "not recorded in both runs"]
    lines += [f"{commits[0] or '–'} → {commits[1] or '–'}"] if any(commits) else []
    return [line(Span(f"  {'code':<14}", "dim"), each) for each in lines]


def _log_lines(task: dict[str, Any]) -> list[Line]:
    """The first line that differs in the logs of a task."""
    log = task["log"]
    texts = ["(no such line)" if log[side] is None else visible(log[side]) for side in ("a", "b")]
    title = line(Span(f"{_name(task)}: the logs differ from line {log['line']:,} on", "bold"))
    return [title, line(f"  - {texts[0]}"), line(f"  + {texts[1]}")]


def _name(task: dict[str, Any]) -> str:
    return str(task["name"] if task["index"] is None else f"{task['name']}[{task['index']}]")


def _task_row(task: dict[str, Any]) -> tuple[str, ...]:
    name = _name(task)
    else_ = [f"{what} {_arrow(task[what])}" for what in ("attempts", "error", "output") if what in task]
    return name, _arrow(task["status"]) if "status" in task else "=", _times(task["seconds"]), "; ".join(else_)


def _times(seconds: dict[str, float | None]) -> str:
    return " → ".join("–" if value is None else duration(value) for value in seconds.values())


def _arrow(pair: dict[str, Any]) -> str:
    return " → ".join(_short(value) for value in pair.values())


def _short(value: Any) -> str:
    text = "–" if value is None else visible(str(value))
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
