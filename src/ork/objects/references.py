"""Names of values that are too large for a status or spec. They are stored in rows and documents, so they never change."""

from __future__ import annotations

from ork.objects import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def output_reference(attempt: str) -> str:
    """The reference of an attempt's output."""
    return layout.output_key(layout.stem(attempt))


def attempt_of_output(reference: str) -> str | None:
    """The attempt whose output it is; None if it is something else."""
    attempt = layout.attempt_of(reference)
    return attempt if attempt is not None and reference == output_reference(attempt) else None


def shared_reference(run: str, task: str, round: int) -> str:
    """The reference of a task's output that is stored once for many attempts."""
    return layout.shared_key(run, task, round)


def references_in(spec: dict[str, Any]) -> list[str]:
    """The references in the values of a spec."""
    named = (spec["inputs"] or {}, spec["upstream"], spec["env"])
    bounds = [bound for group in named for bound in group.values()]
    single = [spec.get(name) or {} for name in ("item", "config", "task_config")]
    return [reference for bound in [*bounds, *single] for reference in references_of(bound)]


def references_of(bound: dict[str, Any]) -> list[str]:
    """The references in bindings; a `value` is the user's data and is not searched."""
    if "object" in bound:
        return [bound["object"]]
    below = bound.get("list", []) if "list" in bound else list(bound.get("map", {}).values())
    return [reference for member in below for reference in references_of(member)]
