"""SQL lives in files: the named blocks of a folder of `.sql` files, read once, when the first of them is needed."""

from __future__ import annotations

import os

_MARK = "-- name: "


class Queries(dict[str, str]):
    """The blocks of one store: the same text object each time, so that caches of prepared statements find it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __missing__(self, name: str) -> str:
        if not self:
            for file in sorted(os.listdir(self.folder)):
                with open(os.path.join(self.folder, file), encoding="utf-8") as text:
                    self.update(parse_blocks(text.read()))
            return self[name]
        raise KeyError(name)


def parse_blocks(text: str) -> dict[str, str]:
    """Block by name, without its comments."""
    blocks: dict[str, str] = {}
    for block in text.split(_MARK)[1:]:
        name, _, body = block.partition("\n")
        lines = [line for line in body.splitlines() if not line.lstrip().startswith("--")]
        blocks[name.strip()] = "\n".join(lines).strip()
    return blocks
