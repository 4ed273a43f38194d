"""The environment variables of a task."""

from __future__ import annotations

import os

from ork.objects.json_text import dumps
from ork.worker.bound import Bindings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def task_environment(spec: dict[str, Any], inherited: Mapping[str, str], bindings: Bindings) -> dict[str, str]:
    """What the worker inherited without anything of Ork's own (tokens, URLs, secrets), and what the spec adds."""
    secrets = set(_secret_variables(spec))
    env = {name: value for name, value in inherited.items() if not name.startswith("ORK_") and name not in secrets}
    if spec.get("python"):
        env.update(_activated(spec["python"], env.get("PATH", os.defpath)))
    if spec.get("traceparent"):
        env["TRACEPARENT"] = spec["traceparent"]
    for name, bound in spec["env"].items():
        env[name] = _text(bindings.value(bound))
    # Last: the attempt's id is also the mark by which its processes are found.
    env.update(_own_variables(spec))
    return env


def _activated(python: str, path: str) -> dict[str, str]:
    """As if the virtual environment had been activated: its programs are found first."""
    programs = os.path.dirname(python)
    return {"VIRTUAL_ENV": os.path.dirname(programs), "PATH": programs + os.pathsep + path}


def _own_variables(spec: dict[str, Any]) -> dict[str, str]:
    variables = {
        "ORK_RUN_ID": spec["run_id"],
        "ORK_TASK_ID": task_id(spec),
        "ORK_TASK_NAME": spec["task"],
        "ORK_WORKFLOW_NAME": spec["workflow"],
        "ORK_ATTEMPT": spec["number"],
        "ORK_PARALLEL_INDEX": spec.get("parallel_index", spec["index"]),
        "ORK_PARALLEL_COUNT": spec["parallel_count"],
        "ORK_SCHEDULED_FOR": spec["scheduled_for"],
        "ORK_ATTEMPT_ID": spec["attempt"],
    }
    return {name: str(value) for name, value in variables.items() if value is not None}


def task_id(spec: dict[str, Any]) -> str:
    """The attempt's id without its number: the same for every try of the task."""
    return str(spec["attempt"]).rpartition("/")[0]


def _secret_variables(spec: dict[str, Any]) -> list[str]:
    bounds = [*(spec["inputs"] or {}).values(), *spec["env"].values()]
    return [bound["secret"] for bound in bounds if "secret" in bound]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else dumps(value)
