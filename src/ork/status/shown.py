"""Outputs as people see them: with the values of the project's secrets masked. What tasks are given is not changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ork.model.masking import Mask

FOUND_AGAIN_SECONDS = 60.0

_find_values: Callable[[], Iterable[str]] = tuple
_found: tuple[float, Mask] | None = None


def hide(find_values: Callable[[], Iterable[str]]) -> None:
    """From now on these are masked in this process. They are looked for when the first output is shown."""
    global _find_values, _found
    _find_values, _found = find_values, None


def shown_text(text: str) -> str:
    """JSON text of an output, for people."""
    return _mask().text(text)


def shown_data(data: bytes) -> bytes:
    return _mask().data(data)


def shown_value(value: Any) -> Any:
    return _mask().value(value)


def _mask() -> Mask:
    global _found
    now = time.monotonic()
    if _found is None or now - _found[0] > FOUND_AGAIN_SECONDS:
        from ork.model.masking import Mask

        _found = now, Mask(_find_values())
    return _found[1]
