"""Marks and ids of commands, notices and audit entries: opaque text in the contract, which sorts in the order they were
given.

Stores that count keep numbers, and show each as digits of one width.
"""

from __future__ import annotations

from ork.errors import UsageError

_WIDTH = 16
_LARGEST = 2**62


def text_of(number: int) -> str:
    return f"{number:0{_WIDTH}d}"


def number_of(text: str) -> int:
    """UsageError for text that no store of this kind has given. Shorter digits are accepted: servers of release 0.1
    gave marks as numbers."""
    if not (text.isascii() and text.isdecimal()) or (number := int(text[:40])) > _LARGEST:
        raise UsageError(f"{text[:40]!r} is not a mark or an id of this store.", hint="use one that the server gave")
    return number
