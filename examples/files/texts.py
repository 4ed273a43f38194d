from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import ork

TEXTS = {"one.txt": "a rose is a rose", "two.txt": "to be or not to be", "three.txt": "call me"}


def write() -> ork.File:
    folder = Path(tempfile.mkdtemp()) / "texts"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    return ork.File(folder)


def count(item: ork.File) -> dict[str, object]:
    return {"name": item.name, "words": len(item.read_bytes().split())}


def table(count: list[dict[str, object]]) -> ork.File:
    path = Path(tempfile.mkdtemp()) / "counts.csv"
    path.write_text("".join(f"{each['name']},{each['words']}\n" for each in count))
    return ork.File(path)


def check(pack: ork.File) -> list[str]:
    with gzip.open(pack.open(), "rt") as file:
        return file.read().split()
