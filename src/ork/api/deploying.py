"""From what was sent to a version. Nothing of the user's is imported or run: texts are read, and compared."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ork.compile.content import make_version
from ork.compile.load import load_workflow
from ork.compile.received import received_workflow
from ork.errors import DocumentError, UsageError
from ork.model.workflow import CompiledWorkflow, Version
from ork.objects.json_text import strict_json

if TYPE_CHECKING:
    from ork.definition.project import Project

COMPILED = "application/vnd.ork.workflow+json"
WRITTEN = frozenset({"application/yaml", "application/x-yaml", "text/yaml", "text/plain", "application/json", ""})
MAX_DEFINITION = 64 << 20
MAX_FILE = 16 << 20
NAMELESS = "workflow.yaml"


def read_version(text: bytes, kind: str, root: str, source: str | None, project: Project | None) -> Version:
    """A workflow file as YAML or JSON, or a workflow that a client compiled."""
    if kind == COMPILED:
        return make_version(_compiled(text), root, source)
    if kind not in WRITTEN:
        raise UsageError(f"{kind[:100]!r} is no workflow", hint="send application/yaml or application/json")
    # Where the files are somewhere else, what tasks say about them is taken on trust: the run will tell.
    reader = _Files(root) if os.path.isdir(root) else None
    loaded = load_workflow(
        text,
        source or NAMELESS,
        read=reader.read if reader else None,
        exists=reader.has if reader else None,
        root=root,
        project=project,
    )
    return make_version(loaded.require(), root, source)


class _Files:
    """Plain files below a folder, as far as they are of a size that code has."""

    def __init__(self, root: str) -> None:
        self._root = root

    def read(self, path: str) -> bytes | None:
        try:
            with open(os.path.join(self._root, path), "rb") as file:
                return file.read(MAX_FILE)
        except OSError:
            return None

    def has(self, path: str) -> bool:
        return os.path.exists(os.path.join(self._root, path))


def _compiled(text: bytes) -> CompiledWorkflow:
    try:
        document = strict_json(text, max_size=MAX_DEFINITION)
    except DocumentError as error:
        raise UsageError(f"the body is {error.message}") from None
    return received_workflow(document)
