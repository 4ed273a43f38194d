"""The Kubernetes manifest: a CronJob, or a Job without a schedule, whose container runs `make`."""

from __future__ import annotations

import re
from typing import Any

import yaml

from ork.eject.plan import secrets_of
from ork.model.workflow import Approval, CompiledWorkflow, Container

IMAGE = "registry.example.org/{name}:1"
PARALLEL = 4


def fits_kubernetes(workflow: CompiledWorkflow) -> str | None:
    """Why it does not fit; None if it does."""
    for task in workflow.tasks:
        if isinstance(task.action, Container) or task.image is not None:
            return f"`{task.name}` starts a container, which a container cannot do without an engine"
        if isinstance(task.action, Approval):
            return f"`{task.name}` waits for a person"
    if any(param.required for param in workflow.params):
        return "a param has no default"
    return None


def manifest_text(workflow: CompiledWorkflow) -> str:
    """The manifest. Secrets come from a Secret of the workflow's name."""
    name = resource_name(workflow.name)
    container: dict[str, Any] = {
        "name": "workflow",
        "image": IMAGE.format(name=name),
        "command": ["make", f"-j{PARALLEL}"],
    }
    secrets = secrets_of(workflow)
    if secrets:
        container["env"] = [
            {"name": secret, "valueFrom": {"secretKeyRef": {"name": f"{name}-secrets", "key": secret}}}
            for secret in secrets
        ]
    pod = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    job = {"backoffLimit": 0, "template": pod}
    schedule = workflow.schedule
    if schedule is None:
        manifest: dict[str, Any] = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": job}
    else:
        spec: dict[str, Any] = {"schedule": schedule.cron, "timeZone": schedule.timezone}
        spec["concurrencyPolicy"] = "Forbid" if workflow.max_active_runs == 1 else "Allow"
        if not schedule.enabled:
            spec["suspend"] = True
        spec["jobTemplate"] = {"spec": job}
        manifest = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec}
    head = "# docker build -t IMAGE . && docker push IMAGE; name the image below; kubectl apply -f this file\n"
    if secrets:
        head += f"# kubectl create secret generic {name}-secrets {' '.join(f'--from-literal={each}=…' for each in secrets)}\n"
    return head + yaml.safe_dump(manifest, sort_keys=False)


def resource_name(name: str) -> str:
    """The workflow's name as a name in Kubernetes: lower case, at most 52 characters."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:52].strip("-") or "workflow"


DOCKERFILE = """\
# The whole workflow in one image: make runs its tasks.
ARG PYTHON=python:3.12-slim
FROM ${PYTHON}
RUN apt-get update && apt-get install -y --no-install-recommends make && rm -rf /var/lib/apt/lists/*
WORKDIR /workflow
COPY . .
RUN if [ -f code/requirements.txt ]; then pip install --no-cache-dir -r code/requirements.txt; fi
CMD ["make", "-j4"]
"""
