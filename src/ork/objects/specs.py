"""Specs of which many say nearly the same: each says first how many of its bytes are its own, and what follows them is
alike, so that whoever reads one after the other reads that once.
"""

from __future__ import annotations

from ork.objects.documents import END_BYTES
from ork.objects.json_text import own_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OWN = b'{"own":'
_alike: tuple[bytes, dict[str, Any] | None, list[str]] = b"", {}, []  # as text, as read, and what is empty in it


def joined(own: bytes, alike: bytes) -> bytes:
    """As text for `documents.seal`; both are entries."""
    return b"%b%d,%b,%b" % (_OWN, len(own), own, alike)


def read_sent(document: bytes) -> dict[str, Any]:
    """What a spec says that came from its scheduler, and that nobody else can have changed. No part of it is shared with
    another one."""
    if not document.startswith(_OWN):
        return own_json(document)  # type: ignore[no-any-return]
    begin = document.index(b",") + 1
    end = begin + int(document[len(_OWN) : begin - 1])
    text = document[end + 1 : -END_BYTES]
    if text != _alike[0]:
        _learn(text)
    _, known, empty = _alike
    if known is None:
        return own_json(document)  # type: ignore[no-any-return]
    spec = known.copy()
    for name in empty:
        spec[name] = {}
    spec.update(own_json(b"{%b}" % document[begin:end]))
    return spec


def _learn(text: bytes) -> None:
    """Something that is more than a word, and could be changed by whoever is given it, is read again each time."""
    global _alike
    known = own_json(b"{%b}" % text)
    made_of_more = [name for name, value in known.items() if isinstance(value, (dict, list))]
    is_simple = all(known[name] == {} for name in made_of_more)
    _alike = text, known if is_simple else None, made_of_more
