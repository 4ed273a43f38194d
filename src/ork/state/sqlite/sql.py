"""The named blocks of `queries/*.sql`, read once, when the first of them is needed."""

from __future__ import annotations

import os

FOLDER = os.path.join(os.path.dirname(__file__), "queries")
_MARK = "-- name: "
_blocks: dict[str, str] = {}


def sql(name: str) -> str:
    """The same text object each time, so that SQLite's cache of prepared statements finds it."""
    if not _blocks:
        for file in sorted(os.listdir(FOLDER)):
            with open(os.path.join(FOLDER, file), encoding="utf-8") as text:
                _blocks.update(parse_blocks(text.read()))
    return _blocks[name]


def parse_blocks(text: str) -> dict[str, str]:
    """Block by name, without its comments."""
    blocks: dict[str, str] = {}
    for block in text.split(_MARK)[1:]:
        name, _, body = block.partition("\n")
        lines = [line for line in body.splitlines() if not line.lstrip().startswith("--")]
        blocks[name.strip()] = "\n".join(lines).strip()
    return blocks
