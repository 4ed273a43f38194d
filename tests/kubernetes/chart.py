"""The Helm chart: rendering it, installing it on the test cluster, and the schemas of the API server to check it with."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.buckets import ROOT
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.programs import folder_or_skip

CHART = ROOT / "deploy/helm/ork"
Document = dict[str, Any]

# What an installation by reference must be told.
BY_REFERENCE = {"store": {"existingSecret": "ork-store"}, "objects": {"url": "s3://bucket/ork?region=eu-central-1"}}
EMBEDDED = {"embedded": True}
EVERYTHING = {
    **BY_REFERENCE,
    "image": {"repository": "registry.example.com/ork", "digest": "sha256:" + "0" * 64, "pullSecrets": ["registry"]},
    "ingress": {"enabled": True, "className": "nginx", "host": "ork.example.com", "tlsSecret": "ork-tls"},
    "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/ork"}},
    "networkPolicy": {"apiFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}]},
    "project": {"workers": {"large": {"memory": "8Gi"}}, "locations": {"etl": {"image": "etl:1"}}, "files": {"pods/gpu.yaml": "{}"}},
    "scheduler": {"drain": True},
    "tasks": {"objectsSecret": "bucket-keys"},
    "api": {"trustedProxies": ["10.0.0.0/8"], "allowedHosts": ["ork.internal"]},
    "env": [{"name": "AWS_REGION", "value": "eu-central-1"}],
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "control", "operator": "Exists"}],
    "priorityClassName": "system-cluster-critical",
}  # fmt: skip
TICKS = {**BY_REFERENCE, "scheduler": {"mode": "tick"}}


def helm(
    *words: str, values: Document | None = None, kubeconfig: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs helm, which finds nothing of the user's own."""
    home = folder_or_skip("helm") / "home"
    home.mkdir(exist_ok=True)
    given = ("--values", "-") if values is not None else ()
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(kubeconfig or "/nonexistent")}
    program = str(folder_or_skip("helm") / "helm")
    text = json.dumps(values) if values is not None else None
    return subprocess.run([program, *words, *given], input=text, capture_output=True, text=True, env=env, timeout=600)


def rendered(values: Document, *words: str) -> list[Document]:
    done = helm("template", "ork", str(CHART), "--namespace", "ork", "--kube-version", "1.34.0", *words, values=values)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def of_kind(documents: list[Document], kind: str) -> list[Document]:
    return [each for each in documents if each["kind"] == kind]


def write_schemas(cluster: Cluster, folder: Path) -> str:
    """The schemas of the API server's own OpenAPI, as files; the location for kubeconform."""
    definitions = cluster.request("GET", "/openapi/v2")["definitions"]
    for definition in definitions.values():
        _make_strict(definition)
    for name, definition in definitions.items():
        for kind in definition.get("x-kubernetes-group-version-kind", []):
            needed: Document = {}
            _collect(name, definitions, needed)
            schema = {"$ref": f"#/definitions/{name}", "definitions": needed}
            version = f"{kind['group'].partition('.')[0]}-{kind['version']}" if kind["group"] else kind["version"]
            (folder / f"{kind['kind'].lower()}-{version}.json").write_text(json.dumps(schema))
    return str(folder / "{{ .ResourceKind }}{{ .KindSuffix }}.json")


def _make_strict(definition: Document) -> None:
    """Unknown fields are errors; amounts and ports may be numbers."""
    if definition.get("format") == "int-or-string" or definition.get("description", "").startswith("Quantity is"):
        definition.pop("type", None)
        definition.pop("format", None)
    if "properties" in definition:
        definition.setdefault("additionalProperties", False)
        for property in definition["properties"].values():
            _make_strict(property)


def _collect(name: str, definitions: Document, needed: Document) -> None:
    if name in needed:
        return
    needed[name] = definitions[name]
    for reference in _references(definitions[name]):
        _collect(reference, definitions, needed)


def _references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"].removeprefix("#/definitions/")] if isinstance(node.get("$ref"), str) else []
        return own + [each for child in node.values() for each in _references(child)]
    if isinstance(node, list):
        return [each for child in node for each in _references(child)]
    return []
