"""Costs as lines of text, for `ork cost` and `ork show --cost`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ork.cli.paint import Line, Span, line, visible
from ork.cli.tables import table
from ork.model.prices import dollars
from ork.status.cost import notes, task_usd, total_line, usd_text
from ork.status.formatting import ago, count, duration

if TYPE_CHECKING:
    from ork.core.cost import OperationCost, TaskCost
    from ork.model.prices import Prices
    from ork.status.cost import CostReport


def report_lines(report: CostReport, short: str) -> list[Line]:
    """One run: its total, its tasks, its operations."""
    return [line(f"{report.workflow} {short}  ", Span(total_line(report), "bold")), *cost_table(report)]


def cost_table(report: CostReport) -> list[Line]:
    """The tasks of a run, and its operations."""
    lines = _tasks((task.name, task) for task in report.tasks)
    return [*lines, *_operations(report.operations)]


def runs_lines(reports: Sequence[CostReport], short: Mapping[Any, str], now: datetime) -> list[Line]:
    rows = [
        (
            short[report.run],
            report.workflow,
            str(report.status),
            ago(report.created_at, now),
            str(sum(task.attempts for task in report.tasks)),
            usd_text(report.usd, is_complete=report.is_complete),
        )
        for report in reports
    ]
    lines = table(("run", "workflow", "status", "created", "attempts", "estimate"), rows, less=(3,))
    return [*lines, _sum(reports)]


def by_task_lines(reports: Sequence[CostReport]) -> list[Line]:
    """Tasks of the same name in runs of the same workflow together, the most expensive first."""
    together: dict[tuple[str, str], list[TaskCost]] = {}
    for report in reports:
        for task in report.tasks:
            together.setdefault((report.workflow, task.name), []).append(task)
    rows = [
        (
            f"{workflow}/{name}",
            f"{sum(task.attempts for task in tasks):,}",
            duration(sum(task.seconds for task in tasks)),
            usd_text(sum(task.usd for task in tasks), is_complete=not any(task.unknown for task in tasks)),
        )
        for (workflow, name), tasks in sorted(together.items(), key=lambda item: -sum(task.usd for task in item[1]))
    ]
    return [*table(("task", "attempts", "ran", "machines"), rows), _sum(reports)]


def note_lines(reports: Sequence[CostReport]) -> list[Line]:
    return [line(Span(f"  {visible(note)}", "dim")) for note in notes(reports)]


def price_lines(prices: Prices) -> list[Line]:
    rows = [
        (
            name,
            f"{price.usd:.10f}".rstrip("0").rstrip("."),
            (source.date or "–") if (source := prices.sources.get(price.source)) is not None else "–",
            ("" if source is None or source.is_checked else "to be checked: ")
            + (source.title if source else price.source),
        )
        for name, price in sorted(prices.items.items())
    ]
    origin = f"from {prices.file}, and shipped with Ork" if prices.file else "shipped with Ork"
    head = f"US dollars for one unit, list prices of {prices.date} ({origin}); some regions have others"
    return [line(Span(head, "dim")), *table(("price", "usd", "seen", "source"), rows, less=(3,))]


def _tasks(tasks: Iterable[tuple[str, TaskCost]]) -> list[Line]:
    rows = [
        (
            f"  {name}",
            ", ".join(task.where),
            f"{task.attempts:,}",
            duration(task.seconds),
            _amount(task.vcpu_seconds),
            _amount(task.gib_seconds),
            task_usd(task),
        )
        for name, task in tasks
    ]
    titles = ("  task", "where", "attempts", "ran", "vCPU s", "GiB s", "estimate")
    return table(titles, rows, less=(1, 5, 4)) if rows else [line(Span("  no attempts yet", "dim"))]


def _operations(operations: Sequence[OperationCost]) -> list[Line]:
    rows = [
        (f"  {each.name}", f"{each.count:,.0f}", "unknown" if each.usd is None else dollars(each.usd))
        for each in operations
    ]
    return table(("  operations", "about", "estimate"), rows) if rows else []


def _amount(amount: float | None) -> str:
    return "unknown" if amount is None else f"{amount:,.1f}"


def _sum(reports: Sequence[CostReport]) -> Line:
    is_complete = all(report.is_complete for report in reports)
    text = usd_text(sum(report.usd for report in reports), is_complete=is_complete)
    return line(Span(f"{count(len(reports), 'run')}: {text} by estimate", "bold"))
