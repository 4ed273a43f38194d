"""The plain manifests in deploy/kubernetes: the chart, rendered.

    python -m tests.kubernetes.manifests --write

A test compares them with the chart.
"""

from __future__ import annotations

import sys
from typing import Any

import yaml

from tests.buckets import ROOT
from tests.kubernetes.chart import rendered

FOLDER = ROOT / "deploy/kubernetes"
Document = dict[str, Any]
_OF_HELM = ("app.kubernetes.io/managed-by", "helm.sh/chart", "app.kubernetes.io/version")
_COMMON = {
    "image": {"tag": "latest"},  # replaced by kustomization.yaml
    "store": {"existingSecret": "ork-store"},
    "objects": {"url": "s3://my-bucket/ork?region=eu-central-1"},
    "tokens": {"existingSecret": "ork-tokens"},
    "api": {"allowedHosts": ["ork.example.com"]},
}
_HEAD = "# Rendered from deploy/helm/ork by `python -m tests.kubernetes.manifests --write`.\n"


def files() -> dict[str, str]:
    """The text of each rendered file, by its path in the folder."""
    always = _documents(_COMMON)
    tick = _documents({**_COMMON, "scheduler": {"mode": "tick"}})
    return {
        "base/ork.yaml": _text(always),
        "tick/tick.yaml": _text([each for each in tick if each["kind"] == "CronJob"]),
    }


def _documents(values: Document) -> list[Document]:
    found = []
    for document in rendered(values, "--skip-tests"):
        about = document["metadata"]
        if document["kind"] != "Namespace":
            about.setdefault("namespace", "ork")
        for label in _OF_HELM:
            about.get("labels", {}).pop(label, None)
        about.pop("annotations", None)
        found.append(document)
    return found


def _text(documents: list[Document]) -> str:
    return _HEAD + yaml.safe_dump_all(documents, sort_keys=False, width=120)


def main() -> None:
    for path, text in files().items():
        if "--write" in sys.argv:
            (FOLDER / path).write_text(text)
        else:
            print(f"# {path}\n{text}")


if __name__ == "__main__":
    main()
