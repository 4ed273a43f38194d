"""Compiles a received workflow to a version, without importing or running user code."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ork.compile.content import make_version
from ork.compile.load import load_workflow
from ork.compile.received import received_workflow
from ork.errors import DocumentError, UsageError
from ork.model.code import code_of_json
from ork.model.workflow import Version
from ork.objects.json_text import strict_json
from ork.source_code.read import read_code

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
        return _compiled_version(text, root, source)
    if kind not in WRITTEN:
        raise UsageError(f"{kind[:100]!r} is not a workflow", hint="send application/yaml or application/json")
    # If the files are on another machine, references to them are not checked until the run.
    reader = _Files(root) if os.path.isdir(root) else None
    loaded = load_workflow(
        text,
        source or NAMELESS,
        read=reader.read if reader else None,
        exists=reader.has if reader else None,
        root=root,
        project=project,
    )
    workflow = loaded.require()
    return make_version(workflow, root, source, read_code(root, workflow))


class _Files:
    """Reads files below a folder, at most MAX_FILE bytes of each."""

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


def _compiled_version(text: bytes, root: str, source: str | None) -> Version:
    """The client's version: it has the files, so their code is what it says."""
    try:
        document = strict_json(text, max_size=MAX_DEFINITION)
    except DocumentError as error:
        raise UsageError(f"the body is {error.message}") from None
    code = None
    if isinstance(document, dict):
        try:
            code = code_of_json(document.pop("code", None))
        except ValueError as error:
            raise UsageError(str(error)) from None
    return make_version(received_workflow(document), root, source, code)
