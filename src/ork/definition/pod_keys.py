"""Keys of a worker config that only Kubernetes knows, and `kubernetes` in ork.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ork.definition.containers import read_image
from ork.definition.keys import Key, KeyTable, Reader, Reading
from ork.definition.nodes import Node
from ork.definition.problems import quoted
from ork.definition.values import entries_of, integer, items_of, read_text
from ork.model.kubernetes import ClusterDefaults, KubernetesPlace, Toleration, gpus

OWN_LABELS = "ork.dev/"  # prefix of labels that Ork sets
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_OBJECT = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_LABEL = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
_USER = re.compile(r"\d{1,10}(:\d{1,10})?")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS = ("Equal", "Exists")
_TEXT = {"type": "string"}
_MAP = {"type": "object", "additionalProperties": _TEXT}


def _matching(pattern: re.Pattern[str], what: str, hint: str) -> Reader:
    def read(node: Node, reading: Reading) -> str | None:
        text = read_text(node, reading)
        if text is not None and not pattern.fullmatch(text):
            reading.refuse("ORK608", f"{quoted(text)} is not {what}", node, hint=hint)
            return None
        return text

    return read


_read_namespace = _matching(_NAMESPACE, "a namespace", "lowercase letters, digits and hyphens, at most 63")
_read_object = _matching(_OBJECT, "the name of an object", "lowercase letters, digits, hyphens and dots")
_read_label = _matching(_LABEL, "a label", "NAME or PREFIX/NAME, such as `disk` or `example.com/disk`")
_read_value = _matching(_VALUE, "the value of a label", "at most 63 letters, digits, dots, hyphens and underscores")


def _read_own_label(node: Node, reading: Reading) -> str | None:
    text: str | None = _read_label(node, reading)
    if text is not None and text.startswith(OWN_LABELS):
        reading.refuse("ORK608", f"labels that begin with {OWN_LABELS} are set by Ork", node)
        return None
    return text


def _one_of(options: tuple[str, ...]) -> Reader:
    def read(node: Node, reading: Reading) -> str | None:
        text = read_text(node, reading)
        if text is not None and text not in options:
            reading.refuse("ORK104", f"{quoted(text)} is not one of: {', '.join(options)}", node)
            return None
        return text

    return read


TOLERATION_TABLE = KeyTable(
    "a toleration",
    (
        Key("key", _read_label, "The taint's key. Default: all keys, with `operator: Exists`.", _TEXT),
        Key("operator", _one_of(_OPERATORS), "Equal or Exists. Default: Equal.", {"enum": [*_OPERATORS]}),
        Key("value", _read_value, "With Equal: the taint's value.", _TEXT),
        Key("effect", _one_of(_EFFECTS), "The taint's effect. Default: all effects.", {"enum": [*_EFFECTS]}),
        Key(
            "seconds",
            integer(0, 1 << 31),
            "With NoExecute: how long it stays on a node with the taint.",
            {"type": "integer"},
        ),
    ),
)


def _read_toleration(node: Node, reading: Reading) -> Toleration | None:
    values = TOLERATION_TABLE.read(node, reading)
    if values is None:
        return None
    if "key" not in values and values.get("operator") != "Exists":
        reading.refuse("ORK608", "a toleration without `key` needs `operator: Exists`", node)
        return None
    return Toleration(**values)


POD_KEYS = (
    Key("namespace", _read_namespace, "On Kubernetes: the namespace. Default: `kubernetes` in ork.yaml.", _TEXT),
    Key("context", read_text, "On Kubernetes: the context of the kubeconfig. Default: its current one.", _TEXT),
    Key("node_selector", entries_of(_read_label, _read_value), "On Kubernetes: labels that its node must have.", _MAP),
    Key(
        "tolerations",
        items_of(_read_toleration),
        "On Kubernetes: taints of nodes that it tolerates.",
        {"type": "array", "items": {"$ref": "#/$defs/toleration"}},
    ),
    Key(
        "image_pull_secrets",
        items_of(_read_object),
        "On Kubernetes: Secrets with the logins of registries.",
        {"type": "array", "items": _TEXT},
    ),
    Key("labels", entries_of(_read_own_label, _read_value), "On Kubernetes: further labels of its pods.", _MAP),
    Key(
        "pod_template",
        read_text,
        "On Kubernetes: a file with a pod, relative to the project's folder. What Ork sets takes precedence.",
        _TEXT,
    ),
)


def refuse_on_kubernetes(values: Mapping[str, Any], node: Node, reading: Reading) -> None:
    """Report values of a config that other platforms understand, and Kubernetes does not."""
    user, gpu = values.get("user"), values.get("gpu")
    if user is not None and not _USER.fullmatch(user):
        hint = "write numbers: `1000`, or `1000:1000` with the group"
        reading.refuse("ORK608", f"user {quoted(user)} is not a number", node.get("user") or node, hint=hint)
    if gpu is not None and gpus(gpu) is None:
        hint = "write their number, `1`, or the name of the resource: `amd.com/gpu=1`"
        reading.refuse("ORK608", f"{quoted(gpu)} is not a number of accelerators", node.get("gpu") or node, hint=hint)


KUBERNETES_TABLE = KeyTable(
    "`kubernetes`",
    (
        Key("namespace", _read_namespace, "The namespace of tasks. Default: that of the kubeconfig.", _TEXT),
        Key("context", read_text, "The context of the kubeconfig. Default: its current one.", _TEXT),
        Key("image", read_image, "An image with Ork in it, which brings the worker into images without it.", _TEXT),
        Key(
            "objects_secret",
            _read_object,
            "A Secret with credentials of the object store, such as AWS_ACCESS_KEY_ID. Workers get them, tasks do not.",
            _TEXT,
        ),
    ),
)


def read_kubernetes(node: Node, reading: Reading) -> ClusterDefaults | None:
    values = KUBERNETES_TABLE.read(node, reading)
    if values is None:
        return None
    place = KubernetesPlace(values.get("context"), values.get("namespace"))
    return ClusterDefaults(place, values.get("image"), values.get("objects_secret"))
