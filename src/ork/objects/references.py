"""Names of values that are too large for a status or spec. They are stored in rows and documents, so they never change."""

from __future__ import annotations

from ork.model.value_reference import references_below
from ork.objects import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def output_reference(attempt: str) -> str:
    """The reference of an attempt's output."""
    return layout.output_key(layout.stem(attempt))


def attempt_of_output(reference: str) -> str | None:
    """The attempt whose output it is; None if it is something else."""
    attempt = layout.attempt_of(reference)
    return attempt if attempt is not None and reference == output_reference(attempt) else None


def value_reference(attempt: str, name: str) -> str:
    """The reference of a value that is not JSON."""
    return layout.value_key(layout.stem(attempt), name)


def attempt_of_value(reference: str) -> str | None:
    """The attempt whose value it is; None if it is something else."""
    return layout.attempt_of(reference) if layout.value_name(reference) is not None else None


def task_of(reference: str) -> str:
    """The name of the task whose value or output it is."""
    parts = layout.parts_of(reference)
    return "value" if parts is None else parts[1]


def preview_reference(reference: str) -> str:
    """The reference of the preview of a value."""
    return reference + "-preview"


def file_reference(reference: str, number: int) -> str:
    """The reference of a file of a folder."""
    return f"{reference}-{number}"


def shared_reference(run: str, task: str, round: int) -> str:
    """The reference of a task's output that is stored once for many attempts."""
    return layout.shared_key(run, task, round)


def references_in(spec: dict[str, Any]) -> list[str]:
    """The references to JSON in the values of a spec."""
    return [reference for bound in bounds_in(spec) for reference in references_of(bound)]


def references_of(bound: dict[str, Any]) -> list[str]:
    """The references to JSON in bindings; a `value` is the user's data and is not searched."""
    if "object" in bound:
        return [bound["object"]]
    return [reference for member in _below(bound) for reference in references_of(member)]


def values_in(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The descriptions of values that are not JSON in a spec. Outputs that the spec only refers to may have more."""
    found = [description for bound in bounds_in(spec) for description in values_of(bound)]
    return found + list(references_below(spec.get("params")))


def values_of(bound: dict[str, Any]) -> list[dict[str, Any]]:
    """The same in bindings. A `value` is searched only if it comes from an output with such values."""
    if "has_values" in bound:
        return list(references_below(bound["value"]))
    return [description for member in _below(bound) for description in values_of(member)]


def bounds_in(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All bindings of a spec."""
    named = (spec["inputs"] or {}, spec["upstream"], spec["env"])
    bounds = [bound for group in named for bound in group.values()]
    bounds += [spec.get(name) or {} for name in ("item", "config", "task_config")]
    return bounds + [word for word in spec.get("argv") or () if isinstance(word, dict)]


def needs_files(spec: Mapping[str, Any]) -> bool:
    """Whether a program gets values as files."""
    return any("as_file" in bound for bound in bounds_in(spec))


def _below(bound: dict[str, Any]) -> list[dict[str, Any]]:
    if "as_file" in bound:
        return [bound["as_file"]]
    return bound.get("list", []) if "list" in bound else list(bound.get("map", {}).values())
