"""Detects `{{ … }}` templates of other tools. Ork evaluates none, so one that looks like a reference is reported."""

from __future__ import annotations

import re

from ork.definition.nodes import Kind, Node
from ork.definition.refs import RefSyntaxError, parse_ref
from ork.definition.report import Report

# A name or a path, optionally with a filter or a call. `{{.Names}}` is a Go template, which is valid text for commands.
_TEMPLATE = re.compile(r"\{\{-?\s*([A-Za-z_][\w.\[\]]*)[^{}]*\}\}")
_MESSAGE = "templates are not supported: `{{{{ {name} }}}}` would be passed to the task as text"


def template_in(text: str) -> str | None:
    """The name in the first `{{ … }}` that looks like a reference."""
    found = _TEMPLATE.search(text) if "{{" in text else None
    return found.group(1) if found else None


def refuse_template(name: str, node: Node, report: Report) -> None:
    hint = f"write `{{ref: {_as_ref(name)}}}` for the whole value; if the text is meant as it stands: `{{const: …}}`"
    report.add("ORK210", _MESSAGE.format(name=name), node, hint=hint)


def refused_as_key(key: Node, report: Report) -> bool:
    """Unquoted, YAML reads `{{ x }}` as a map whose key is the map `{x: null}`."""
    if key.kind != Kind.MAP or len(key.value) != 2 or key.value[0].kind not in (Kind.PLAIN, Kind.QUOTED):
        return False
    refuse_template(str(key.value[0].value), key, report)
    return True


def _as_ref(name: str) -> str:
    """What to write instead: the name itself if it is a valid path, else an example of one."""
    if name.endswith(".output") and not name.startswith("tasks."):
        return f"tasks.{name}"
    try:
        parse_ref(name, ())
    except RefSyntaxError:
        return f"params.{name}"
    return name if "." in name else f"params.{name}"
