"""Parses the pod template of a worker config: a file with a pod, as Kubernetes writes it."""

from __future__ import annotations

from typing import Any

from ork.definition.nodes import Kind
from ork.definition.report import ProblemReport
from ork.definition.values import NotJsonError, json_constant
from ork.definition.yaml_tree import parse_yaml
from ork.errors import DefinitionError

MAX_BYTES = 64 * 1024
_KINDS = ("Pod", "PodTemplate")
_ALLOWED = ("apiVersion", "kind", "metadata", "spec", "template")


def parse_pod_template(data: bytes, path: str) -> dict[str, Any]:
    """`metadata` and `spec` of the pod in a file. DefinitionError if it is no pod."""
    shown = f"pod_template {path}"
    if len(data) > MAX_BYTES:
        raise DefinitionError(f"{shown} has more than {MAX_BYTES:,} bytes")
    report = ProblemReport(path)
    node = parse_yaml(data, report)
    if report.problems():
        raise DefinitionError(f"{shown} has errors", report.problems())
    if node is None or node.kind != Kind.MAP:
        raise DefinitionError(f"{shown} is not a map")
    try:
        content: dict[str, Any] = json_constant(node)
    except NotJsonError as error:
        raise DefinitionError(f"{shown}: {error.message}", hint=error.hint) from None
    return _pod_of(content, shown)


def _pod_of(content: dict[str, Any], shown: str) -> dict[str, Any]:
    unknown = sorted(set(content) - set(_ALLOWED))
    kind = content.get("kind", "Pod")
    if unknown or kind not in _KINDS:
        what = f"has the unknown key `{unknown[0]}`" if unknown else f"is a {kind}"
        raise DefinitionError(f"{shown} {what}", hint="it has `metadata` and `spec` of a Pod")
    pod = content.get("template", content) if kind == "PodTemplate" else content
    found = {name: pod.get(name) or {} for name in ("metadata", "spec")}
    if not all(isinstance(each, dict) for each in found.values()):
        raise DefinitionError(f"{shown}: `metadata` and `spec` must be maps")
    return found
