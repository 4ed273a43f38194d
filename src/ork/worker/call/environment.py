"""The environment variables of a task."""

from __future__ import annotations

import os

from ork.objects.json_text import dumps
from ork.worker.call.bindings import Bindings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


_came_with: dict[str, str] | None = None
_own_names: tuple[str, ...] = ()
_without_own: dict[str, str] = {}
_are_own_hidden = False


def inherited() -> dict[str, str]:
    """What this process came with. Looked at once, and so once for all that are forked from it."""
    global _came_with, _own_names, _without_own
    if _came_with is None:
        _came_with = dict(os.environ)
        _own_names = _names_of_ork(_came_with)
        _without_own = {name: value for name, value in _came_with.items() if name not in _own_names}
    return _came_with


def names_of_ork() -> tuple[str, ...]:
    """Those that this process came with."""
    inherited()
    return _own_names


def set_environment(spec: dict[str, Any], bindings: Bindings) -> None:
    """Gives this process the task's environment; `bindings` have the one it came with."""
    added = additions(spec, bindings.environ, bindings)
    hide_own_variables()
    if spec["inputs"] or spec["env"]:
        for name in hidden_names(spec, bindings.environ):
            if name not in added:
                os.environ.pop(name, None)
    for name, value in added.items():
        os.environ[name] = value


def hide_own_variables() -> None:
    """Removes Ork's own variables (tokens, URLs, secrets) from this process's environment. Done once."""
    global _are_own_hidden
    if not _are_own_hidden:
        _are_own_hidden = True
        for name in names_of_ork():
            os.environ.pop(name, None)


def hidden_names(spec: dict[str, Any], environ: Mapping[str, str]) -> list[str]:
    """Those that are not for the task: Ork's own (tokens, URLs), and secrets."""
    own = _own_names if environ is _came_with else _names_of_ork(environ)
    if not spec["inputs"] and not spec["env"]:
        return list(own)
    bounds = [*(spec["inputs"] or {}).values(), *spec["env"].values()]
    secrets = {bound["secret"] for bound in bounds if "secret" in bound}
    return [*own, *(name for name in secrets.difference(own) if name in environ)]


def task_environment(spec: dict[str, Any], inherited: Mapping[str, str], bindings: Bindings) -> dict[str, str]:
    """What the worker inherited without anything of Ork's own, and what the spec adds."""
    if inherited is _came_with and not spec["inputs"] and not spec["env"]:
        env = _without_own.copy()
    else:
        env = dict(inherited)
        for name in hidden_names(spec, inherited):
            del env[name]
    env.update(additions(spec, inherited, bindings))
    return env


def additions(spec: dict[str, Any], inherited: Mapping[str, str], bindings: Bindings | None) -> dict[str, str]:
    """What the spec adds to what the worker inherited. `bindings` open the values of its `env`, if it has any."""
    env = {}
    if spec.get("python"):
        env.update(_activated(spec["python"], inherited.get("PATH", os.defpath)))
    if spec.get("traceparent"):
        env["TRACEPARENT"] = spec["traceparent"]
    for name, bound in spec["env"].items():
        assert bindings is not None
        env[name] = _text(bindings.value(bound))
    # Last: the attempt's id is also the tag by which its processes are found.
    own = _own_variables(spec)
    return env | own if env else own


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
        "ORK_ATTEMPT": str(spec["number"]),
        "ORK_ATTEMPT_ID": spec["attempt"],
    }
    index = spec.get("parallel_index", spec["index"])
    if index is not None:
        variables["ORK_PARALLEL_INDEX"] = str(index)
    if spec["parallel_count"] is not None:
        variables["ORK_PARALLEL_COUNT"] = str(spec["parallel_count"])
    if spec["scheduled_for"] is not None:
        variables["ORK_SCHEDULED_FOR"] = spec["scheduled_for"]
    return variables


def task_id(spec: dict[str, Any]) -> str:
    """The attempt's id without its number: the same for every try of the task."""
    return str(spec["attempt"]).rpartition("/")[0]


def _names_of_ork(environ: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name for name in environ if name.startswith("ORK_"))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else dumps(value)
