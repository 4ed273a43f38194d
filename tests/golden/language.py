"""Compiles every language feature with this release: `python -m tests.golden.language` writes `<release>/language.json`."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from ork.compile.content import content_hash, to_document
from ork.locations.files import FileContext, read_definitions
from ork.settings import load_settings

FOLDER = Path(__file__).parent
FLOWS = ("graph.yaml", "fan_out.yaml", "kinds.yaml", "parent.yaml", "python_flow.py")


def compiled(folder: Path) -> dict[str, Any]:
    """Each workflow's name, with its hash and its document."""
    around = FileContext(load_settings(folder=str(folder), environ={}).project)
    found = {}
    for flow in FLOWS:
        for read in read_definitions(str(folder / flow), around):
            assert read.workflow is not None, read.problems
            found[read.workflow.name] = {"hash": content_hash(read.workflow), "document": to_document(read.workflow)}
    return found


if __name__ == "__main__":
    version = tomllib.loads((FOLDER.parent.parent / "pyproject.toml").read_text())["project"]["version"]
    text = json.dumps(compiled(FOLDER / version / "language"), indent=1, sort_keys=True)
    (FOLDER / version / "language.json").write_text(text + "\n")
