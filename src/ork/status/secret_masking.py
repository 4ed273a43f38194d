"""Masks the values of secrets in outputs shown to people. Tasks receive outputs unmasked."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from ork.model.secret import named_secrets

if TYPE_CHECKING:
    from ork.model.masking import Mask
    from ork.model.workflow import CompiledWorkflow

FOUND_AGAIN_SECONDS = 60.0

_find_values: Callable[[Collection[str]], Iterable[str]] = tuple
_names: set[str] = set()  # secrets used by workflows whose outputs are shown
_found: tuple[float, Mask] | None = None


def set_secret_lookup(find_values: Callable[[Collection[str]], Iterable[str]]) -> None:
    """Sets the function that returns the values of secrets. It is called when the first output is shown."""
    global _find_values, _found
    _find_values, _found = find_values, None


def mask_secrets_of(workflow: CompiledWorkflow) -> None:
    """Adds the workflow's secrets to those that are masked, before outputs of its tasks are shown."""
    global _found
    names = {name for spec in workflow.tasks for name in named_secrets(spec)}
    if not names <= _names:
        _names.update(names)
        _found = None


def mask_text(text: str) -> str:
    """The JSON text of an output with secrets masked."""
    return _mask().text(text)


def mask_bytes(data: bytes) -> bytes:
    return _mask().data(data)


def mask_value(value: Any) -> Any:
    return _mask().value(value)


def _mask() -> Mask:
    global _found
    now = time.monotonic()
    if _found is None or now - _found[0] > FOUND_AGAIN_SECONDS:
        from ork.model.masking import Mask

        _found = now, Mask(_find_values(_names))
    return _found[1]
