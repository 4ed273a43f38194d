"""Checks values against the types that a task declares: inputs before it starts, the output when it has returned."""

from __future__ import annotations

from ork.model.types import check, resolved, side_of
from ork.objects.json_text import stored_json
from ork.worker.call.results import storable
from ork.worker.data.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def check_input(data: bytes, spec: dict[str, Any]) -> None:
    """InputError if the whole input of a command does not have its declared type."""
    mismatch = check(stored_json(data, max_size=len(data)), spec["input_type"], spec["types"], "input")
    if mismatch is not None:
        raise InputError(storable(f"{mismatch.of_value()} (by `input_type`)"))


def check_argument(name: str, value: Any, spec: dict[str, Any]) -> None:
    """InputError if an argument of a function, as JSON, does not have its declared type."""
    types = spec["types"]
    shape = resolved(side_of(resolved(spec["input_type"], types), "takes"), types)
    fields = shape.get("object", {}) if isinstance(shape, dict) else {}
    mismatch = check(value, fields.get(name, "any"), types) if name in fields else None
    if mismatch is not None:
        raise InputError(storable(f"argument `{name}`{_joined(mismatch.of_value())} (by `input_type`)"))


def wrong_output(text: str | None, spec: dict[str, Any]) -> dict[str, Any] | None:
    """The failure if an output (JSON text; None without one) does not have its declared type."""
    value = None if text is None else stored_json(text.encode(), max_size=len(text))
    mismatch = check(value, spec["output_type"], spec["types"], "output")
    if mismatch is None:
        return None
    detail = {key: storable(part) for key, part in mismatch.as_json().items()}
    return {"kind": "output", "message": storable(f"{mismatch.of_value()} (by `output_type`)"), "detail": detail}


def _joined(sentence: str) -> str:
    """The argument's name and the error: `.rows[3]: expected …` follows the name directly, `expected …` after a
    colon."""
    return sentence if sentence.startswith((".", "[")) else f": {sentence}"
