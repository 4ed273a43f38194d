"""Decrypts sensitive params of a run for an attempt. The worker gets them as environment variables, like secrets."""

from __future__ import annotations

import json

from ork.core.bind import BindError
from ork.model.run import Run
from ork.model.secret import PARAM_PREFIX, SealError, sealed_names, unseal
from ork.model.workflow import Custom, PythonCall, Ref, TaskSpec


def opened_params(names: list[str], spec: TaskSpec, run: Run, key: bytes) -> tuple[tuple[str, str], ...]:
    """The params that the task can read, as variables: all for a function, for a program those that it refers to."""
    if not isinstance(spec.action, PythonCall | Custom):
        refs = [value.path for _, value in (*spec.inputs, *spec.env) if isinstance(value, Ref)]
        referred = {path[1] for path in refs if path[0] == "params"}
        names = [name for name in names if name in referred]
    return tuple((PARAM_PREFIX + name, json.dumps(opened_param(run, name, key))) for name in names)


def all_opened(run: Run, key: bytes) -> dict[str, str]:
    """All sensitive params of the run, as environment variables."""
    return {PARAM_PREFIX + name: json.dumps(opened_param(run, name, key)) for name in sealed_names(run.params)}


def opened_param(run: Run, name: str, key: bytes) -> object:
    try:
        return unseal(key, run.workflow, name, run.params[name])
    except SealError:
        raise BindError(f"param `{name}` cannot be decrypted: it was not sealed by this installation") from None
