"""Reads the output of `ork-parse`. It is untrusted, so everything is checked."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from ork.compile.received import received_workflow
from ork.definition.problems import Problem
from ork.errors import DefinitionError, DocumentError
from ork.locations.parse import FORMAT
from ork.model.workflow import CompiledWorkflow
from ork.objects.json_text import strict_json

MAX_BYTES = 16 << 20
MAX_PROBLEMS = 1000
_MAX_TEXT = 4000


class FoundWorkflow(NamedTuple):
    """A workflow of a location; `file` and `root` are absolute paths where `ork-parse` ran."""

    workflow: CompiledWorkflow
    file: str
    root: str


class ParsedDocument(NamedTuple):
    found: tuple[FoundWorkflow, ...]
    problems: tuple[Problem, ...]


def read_document(data: bytes) -> ParsedDocument:
    """Raises DocumentError for anything that `ork-parse` would not have written."""
    document = strict_json(data, max_size=MAX_BYTES)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DocumentError(f"not a document of ork-parse in format {FORMAT}")
    try:
        folder = _text(document["folder"])
        found = tuple(_found(entry, folder) for entry in document["workflows"])
        problems = tuple(_problem(entry) for entry in document["problems"][:MAX_PROBLEMS])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DocumentError(f"not a document of ork-parse: {error!r}") from None
    names = [each.workflow.name for each in found]
    if not os.path.isabs(folder) or (len(set(names)) != len(names) and not problems):
        raise DocumentError("not a document of ork-parse: it is inconsistent")
    return ParsedDocument(found, problems)


def _found(entry: dict[str, Any], folder: str) -> FoundWorkflow:
    try:
        workflow = received_workflow(entry["definition"])
    except DefinitionError as error:
        raise DocumentError(error.message) from None
    file, root = (os.path.normpath(os.path.join(folder, _text(entry[name]))) for name in ("file", "root"))
    return FoundWorkflow(workflow, file, root)


def _problem(entry: dict[str, Any]) -> Problem:
    code, message, file = (_text(entry[name]) for name in ("code", "message", "file"))
    line, column, end_column = (int(entry[name]) for name in ("line", "column", "end_column"))
    source_line, hint = (None if entry[name] is None else _text(entry[name]) for name in ("source_line", "hint"))
    return Problem(code, message, file, line, column, end_column, source_line, hint)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is not text")
    return value[:_MAX_TEXT]
