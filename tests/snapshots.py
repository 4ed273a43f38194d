"""Looks into pages that were exported as one file: their data are compressed in them."""

from __future__ import annotations

import base64
import json
import re
import zlib


def island(page: str, name: str) -> bytes:
    """One of the compressed parts: `style`, `pages` or `snapshot`."""
    found = re.search(rf'id="ork-{name}">([^<]*)<', page)
    assert found is not None, name
    return zlib.decompress(base64.b64decode(found[1]))


def unpacked(page: str) -> dict[str, bytes]:
    """The documents by name."""
    data = island(page, "snapshot")
    at = 4 + int.from_bytes(data[:4], "big")
    documents = {}
    for name, size in json.loads(data[4:at]):
        documents[name], at = data[at : at + size], at + size
    return documents


def readable(text: str) -> str:
    """The text itself, or, of such a page, everything that can be read in it."""
    if 'id="ork-snapshot"' not in text:
        return text
    documents = "\n".join(_plain(data.decode()) for data in unpacked(text).values())
    return f"{re.sub(r'>[^<]*</script>', '></script>', text)}\n{documents}"


def _plain(text: str) -> str:
    """JSON without escapes of characters, which could hide a value."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except ValueError:
        return text
