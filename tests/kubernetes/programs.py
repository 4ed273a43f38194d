"""Where `scripts/components.sh` keeps the programs of Kubernetes."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

import pytest

from tests.buckets import ROOT, cached

# By component: the script's name for it, its folder, its programs.
_COMPONENTS = {
    "kubernetes": ("kubernetes", "kubernetes-*", ("etcd", "kube-apiserver", "kube-controller-manager")),
    "kubelet": ("kubelet", "kubernetes-*", ("kube-scheduler", "kubelet")),
    "helm": ("helm", "helm-*", ("helm",)),
    "kubeconform": ("helm", "kubeconform-*", ("kubeconform",)),
}


def folder_or_skip(component: str) -> Path:
    """The folder with the component's programs. Builds them if they are missing, or waits for a build that is under way."""
    found = _folder(component)
    if isinstance(found, str):
        pytest.skip(found)
    return found


@functools.cache
def _folder(component: str) -> Path | str:
    name, pattern, programs = _COMPONENTS[component]
    folder = cached(pattern)
    if not all((folder / program).exists() for program in programs):
        done = subprocess.run([ROOT / "scripts/components.sh", name], capture_output=True, text=True)
        if done.returncode != 0:
            return f"{component} cannot be built here (scripts/components.sh {name}): {done.stderr.strip()[-300:]}"
    return folder
