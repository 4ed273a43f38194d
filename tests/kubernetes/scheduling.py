"""Which pods fit on the node, and the scheduler's words for those that do not."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from tests.kubernetes.quantities import amount

Document = dict[str, Any]


def problem(pod: Document, node: Document, others: Iterable[Document]) -> str | None:
    """Why the pod does not fit beside the others, or None if it does."""
    spec = pod["spec"]
    labels = node["metadata"].get("labels") or {}
    reasons = []
    if any(labels.get(name) != value for name, value in (spec.get("nodeSelector") or {}).items()):
        reasons.append("node(s) didn't match Pod's node affinity/selector")
    taint = next((taint for taint in node["spec"].get("taints") or [] if not _tolerated(taint, spec)), None)
    if taint:
        reasons.append(f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}")
    capacity, used = node["status"]["allocatable"], [requests(other) for other in others]
    for name, wanted in requests(pod).items():
        if wanted and sum((each.get(name, Fraction(0)) for each in used), wanted) > amount(capacity.get(name, 0)):
            reasons.append(f"Insufficient {name}")
    if len(used) >= amount(capacity["pods"]):
        reasons.append("Too many pods")
    if not reasons:
        return None
    return f"0/1 nodes are available: {', '.join(f'1 {reason}' for reason in reasons)}."


def requests(pod: Document) -> dict[str, Fraction]:
    """What the pod asks for: the sum of its containers, or its largest init container if that is more."""
    total: dict[str, Fraction] = {}
    for container in pod["spec"]["containers"]:
        for name, value in ((container.get("resources") or {}).get("requests") or {}).items():
            total[name] = total.get(name, Fraction(0)) + amount(value)
    for container in pod["spec"].get("initContainers") or []:
        for name, value in ((container.get("resources") or {}).get("requests") or {}).items():
            always = container.get("restartPolicy") == "Always"
            total[name] = (
                total.get(name, Fraction(0)) + amount(value)
                if always
                else max(total.get(name, Fraction(0)), amount(value))
            )
    return total


def _tolerated(taint: Document, spec: Document) -> bool:
    if taint["effect"] == "PreferNoSchedule":
        return True
    for toleration in spec.get("tolerations") or []:
        same_effect = toleration.get("effect") in (None, "", taint["effect"])
        same_key = toleration.get("key") in (None, "", taint["key"])
        same_value = toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")
        if same_effect and same_key and same_value:
            return True
    return False
