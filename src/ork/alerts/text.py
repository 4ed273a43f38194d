"""The text of alerts."""

from __future__ import annotations

import re
from typing import Any

from ork.errors import UsageError
from ork.model.notice import Notice, NoticeKind
from ork.model.record import replaced
from ork.model.workflow import Approval, CompiledWorkflow, OnExceed

FIELDS = ("kind", "workflow", "run", "task", "error", "detail", "title", "at")
SHOWN_CHARACTERS = 2000
_FIELD = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def check_template(template: str, where: str) -> None:
    """Only `{field}` with known fields, and doubled braces, are allowed. Nothing in a template is evaluated."""
    for found in _FIELD.finditer(template):
        if found[0] not in ("{{", "}}") and found[1] not in FIELDS:
            hint = "write {{ or }} for a brace" if found[1] is None else f"one of: {', '.join(FIELDS)}"
            raise UsageError(f"{where}: the template has no field {found[0]}", hint=hint)


def words(notice: Notice, template: str | None = None) -> str:
    fields = fields_of(notice)
    if template is None:
        more = [fields["error"], fields["detail"], _next_step(notice)]
        return "\n".join([fields["title"], *(line for line in more if line)])
    return _FIELD.sub(lambda found: found[0][0] if found[1] is None else fields[found[1]], template)


def with_detail(notice: Notice, workflow: CompiledWorkflow | None) -> Notice:
    """Add the question of an approval or the budget of a run, which are in the workflow, not in the stored alert."""
    if notice.kind is NoticeKind.BUDGET and workflow is not None and workflow.budget is not None:
        from ork.model.prices import dollars

        what = "was cancelled" if workflow.budget.on_exceed is OnExceed.CANCEL else "continues"
        detail = f"by estimate it costs more than {dollars(workflow.budget.usd)}; it {what}"
        return replaced(notice, detail=detail)
    if notice.kind is not NoticeKind.APPROVAL or workflow is None or notice.task is None:
        return notice
    actions = {spec.name: spec.action for spec in workflow.tasks}
    action = actions.get(notice.task.name)
    return replaced(notice, detail=action.message) if isinstance(action, Approval) else notice


def _next_step(notice: Notice) -> str:
    if notice.kind is NoticeKind.APPROVAL:
        return f"`ork approve {notice.run} {notice.task}` or `ork reject {notice.run} {notice.task}`"
    if notice.kind is NoticeKind.BUDGET:
        return f"see `ork cost {notice.run}`"
    return f"see `ork show {notice.run}`" if notice.run else ""


def fields_of(notice: Notice) -> dict[str, str]:
    return {
        "kind": notice.kind.value,
        "workflow": notice.workflow,
        "run": notice.run or "",
        "task": str(notice.task or ""),
        "error": _short(notice.failure.message if notice.failure else ""),
        "detail": _short(notice.detail or ""),
        "title": title(notice),
        "at": _time(notice),
    }


def title(notice: Notice) -> str:
    match notice.kind:
        case NoticeKind.TASK:
            return f"{notice.workflow}: task {notice.task} failed"
        case NoticeKind.RUN:
            return f"{notice.workflow}: run {notice.run} failed"
        case NoticeKind.RECOVERY:
            return f"{notice.workflow}: run {notice.run} succeeded again"
        case NoticeKind.MISSED:
            return f"{notice.workflow}: scheduled runs were missed"
        case NoticeKind.APPROVAL:
            return f"{notice.workflow}: {notice.task} waits for approval"
        case NoticeKind.BUDGET:
            return f"{notice.workflow}: run {notice.run} exceeded its budget"
        case NoticeKind.TEST:
            return "ork: a test message"


def document(notice: Notice, text: str) -> dict[str, Any]:
    """The JSON of a webhook. `id` is the same for every retry, so that a receiver can detect duplicates."""
    failure = notice.failure
    return {
        "id": notice.id,
        "kind": notice.kind.value,
        "workflow": notice.workflow,
        "run": notice.run,
        "task": None if notice.task is None else notice.task.name,
        "index": None if notice.task is None else notice.task.index,
        "error": None if failure is None else {"kind": failure.kind.value, "message": _short(failure.message)},
        "detail": notice.detail,
        "raised_at": _time(notice),
        "text": text,
    }


def _time(notice: Notice) -> str:
    return notice.raised_at.isoformat().replace("+00:00", "Z")


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
