"""Where `scripts/components.sh` keeps the programs of Kubernetes."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_SCRIPT = ROOT / "scripts/components.sh"
_COMPONENTS = {
    "kubernetes": ("KUBERNETES", ("etcd", "kube-apiserver", "kube-controller-manager")),
    "kubelet": ("KUBERNETES", ("kube-scheduler", "kubelet")),
    "helm": ("HELM", ("helm",)),
    "kubeconform": ("KUBECONFORM", ("kubeconform",)),
}


def folder_or_skip(component: str) -> Path:
    """The folder with the component's programs. Builds them if they are missing, or waits for a build that is under way."""
    found = _folder(component)
    if isinstance(found, str):
        pytest.skip(found)
    return found


@functools.cache
def _folder(component: str) -> Path | str:
    variable, programs = _COMPONENTS[component]
    folder = _cache() / _version(variable)
    if not all((folder / name).exists() for name in programs):
        asked = "helm" if component == "kubeconform" else component
        done = subprocess.run([_SCRIPT, asked], capture_output=True, text=True)
        if done.returncode != 0:
            return f"{component} cannot be built here (scripts/components.sh {asked}): {done.stderr.strip()[-300:]}"
    return folder


def _version(variable: str) -> str:
    found = re.search(rf"^{variable}=\$CACHE/(.+)$", _SCRIPT.read_text(), re.M)
    assert found is not None
    return found[1]


def _cache() -> Path:
    own = os.environ.get("ORK_TESTS_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "ork-tests")
