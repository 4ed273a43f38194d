"""SQL lives in files: the named blocks of a folder of `.sql` files, read once, when the first of them is needed."""

from __future__ import annotations

import os

_MARK = "-- name: "


class Queries:
    """The blocks of one store."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._blocks: dict[str, str] = {}

    def text(self, name: str) -> str:
        """The same text object each time, so that caches of prepared statements find it."""
        if not self._blocks:
            for file in sorted(os.listdir(self.folder)):
                with open(os.path.join(self.folder, file), encoding="utf-8") as text:
                    self._blocks.update(parse_blocks(text.read()))
        return self._blocks[name]


def parse_blocks(text: str) -> dict[str, str]:
    """Block by name, without its comments."""
    blocks: dict[str, str] = {}
    for block in text.split(_MARK)[1:]:
        name, _, body = block.partition("\n")
        lines = [line for line in body.splitlines() if not line.lstrip().startswith("--")]
        blocks[name.strip()] = "\n".join(lines).strip()
    return blocks
