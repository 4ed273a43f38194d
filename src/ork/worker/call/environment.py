"""The bound values of a spec, and the environment variables of a task, some of which are such values.

A value is inline, in a large object, secret, missing, or a list or map of such.
"""

from __future__ import annotations

import os

from ork.errors import ObjectsError
from ork.model.value_reference import IN_TEXT, description_in, fact, has_mark
from ork.objects.json_text import dumps, stored_json, strict_json
from ork.worker.data.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.worker.data.inputs import InputValues


HIDDEN = "***"
INPUTS, OUTPUTS = (
    "inputs",
    "outputs",
)  # folders with copies of files, and with the file that a program leaves as its output


class Bindings:
    """Reads bound values. Each object is read once, however many values refer to it.

    Secrets come from `environ`, the worker's own environment, which the task does not see. `spec` is the attempt's.
    """

    def __init__(
        self, objects: AttemptDocuments, output_limit: int, environ: dict[str, str], spec: dict[str, Any] | None = None
    ) -> None:
        self._objects = objects
        self._limit = output_limit
        self._spec = spec or {}
        self.environ = environ
        self._opened: dict[str, Any] = {}
        self._with_values: dict[str, bool] = {}  # objects, and whether they have references to values
        self._values: InputValues | None = None
        self.folder: str | None = None  # for copies of files, instead of the usual one

    def value(self, bound: dict[str, Any]) -> Any:
        if "value" in bound:
            return bound["value"]
        if "object" in bound:
            return _follow(self._whole(bound["object"]), bound.get("path", []))
        if "secret" in bound:
            text = self._secret(bound["secret"])
            if "json" not in bound:
                return text
            return _follow(strict_json(text.encode(), max_size=self._limit), bound["path"])
        if "as_file" in bound:
            return self.values().file_with(self.value(bound["as_file"]), bound["name"])
        if "list" in bound:
            return [self.value(item) for item in bound["list"]]
        if "map" in bound:
            return {name: self.value(member) for name, member in bound["map"].items()}
        return None

    def argument(self, bound: dict[str, Any]) -> Any:
        """The value for a parameter of a function: stored values are `ork.worker.data.decode.Incoming`."""
        value = self.value(bound)
        return self.values().in_place(value) if self._has_values(bound) else value

    def _has_values(self, bound: dict[str, Any]) -> bool:
        if "object" in bound:
            return self._with_values.get(bound["object"], False)
        if "list" in bound or "map" in bound:
            below = bound["list"] if "list" in bound else bound["map"].values()
            return any(self._has_values(member) for member in below)
        return "has_values" in bound

    def values(self) -> InputValues:
        if self._values is None:
            from ork.worker.data.inputs import InputValues

            self._values = InputValues(self._objects, self.inputs_folder(), self._spec.get("codecs"))
        return self._values

    def use_values(self, values: InputValues) -> None:
        self._values = values

    def inputs_folder(self) -> str:
        """Where copies of files for the task are. Whoever supervises the task removes it."""
        return self.folder or self._objects.work_file(self._spec["attempt"], INPUTS)

    def words(self, argv: list[Any]) -> list[str]:
        """The arguments of a program; files are made for those that are files."""
        return [word if isinstance(word, str) else str(self.value(word) or "") for word in argv]

    def json_bytes(self, bound: dict[str, Any]) -> bytes:
        """The value as JSON text. A whole object is passed on as stored, without decoding it."""
        if "object" in bound and not bound.get("path"):
            return self._bytes(bound["object"])
        return dumps(self.value(bound)).encode()

    def _whole(self, key: str) -> Any:
        if key not in self._opened:
            data = self._bytes(key)
            self._with_values[key] = IN_TEXT.encode() in data
            self._opened[key] = stored_json(data, max_size=self._limit)
        return self._opened[key]

    def _bytes(self, key: str) -> bytes:
        (data,) = self._objects.read_values([key], self._limit)
        if isinstance(data, ObjectsError):
            raise data
        if data is None:
            raise InputError(f"the output of an earlier task is gone: {key}")
        return data

    def _secret(self, variable: str) -> str:
        try:
            return self.environ[variable]
        except KeyError:
            raise InputError(f"the secret {variable} was not given to this worker") from None


def may_have_files(spec: dict[str, Any]) -> bool:
    """Whether a function may have made copies of files: its input has values that are not JSON, or is not known here."""
    bounds = [*(spec["inputs"] or {}).values(), *spec["upstream"].values(), spec.get("item") or {}]
    return any("value" not in bound or "has_values" in bound for bound in bounds)


def remove_inputs(objects: AttemptDocuments, attempt: str) -> None:
    """Remove the copies of files that the attempt was given."""
    folder = objects.work_file(attempt, INPUTS)
    if os.path.isdir(folder):
        from shutil import rmtree

        rmtree(folder, ignore_errors=True)


def param_bounds(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """All params of the run by name. The values of sensitive ones are in the worker's environment."""
    bounds: dict[str, dict[str, Any]] = {name: param_bound(value) for name, value in spec["params"].items()}
    for name in spec.get("sealed_params", ()):
        bounds[name] = {"secret": f"ORK_PARAM_{name}", "json": True, "path": []}
    return bounds


def param_bound(value: Any) -> dict[str, Any]:
    """A param that is not sensitive. The task that started a sub-workflow may have passed values that are not JSON."""
    return {"value": value, "has_values": True} if has_mark(value) else {"value": value}


def is_missing(bound: dict[str, Any]) -> bool:
    """True for the output of an upstream task that did not succeed; its value is None whatever type is expected."""
    return "missing" in bound


def _follow(value: Any, path: list[str | int]) -> Any:
    walked = ""
    for step in path:
        try:
            if isinstance(value, dict) != isinstance(step, str):
                raise TypeError
            reference = description_in(value)
            value = value[step] if reference is None else fact(reference, step)
        except (KeyError, IndexError, TypeError):
            raise InputError(f"there is no {step!r} in the upstream output{walked and ' at ' + walked}") from None
        walked += f"[{step}]" if isinstance(step, int) else f".{step}"
    return value


STORE_CREDENTIALS = "ORK_STORE_"
_came_with: dict[str, str] | None = None
_own_names: tuple[str, ...] = ()
_without_own: dict[str, str] = {}
_are_own_hidden = False


def inherited() -> dict[str, str]:
    """The environment that this process was started with. Read once, and shared by all processes forked from it."""
    global _came_with, _own_names, _without_own
    if _came_with is None:
        _came_with = dict(os.environ)
        _own_names = _names_of_ork(_came_with)
        _without_own = {name: value for name, value in _came_with.items() if name not in _own_names}
    return _came_with


def names_of_ork() -> tuple[str, ...]:
    """The names of Ork's own variables that this process was started with."""
    inherited()
    return _own_names


def set_environment(spec: dict[str, Any], bindings: Bindings) -> None:
    """Set the task's environment in this process; `bindings` has the environment that it was started with."""
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
        if any(name.startswith(STORE_CREDENTIALS) for name in names_of_ork()):
            from ork.objects.buckets.environment import keep_passed

            keep_passed()  # needed to store the output
        for name in names_of_ork():
            os.environ.pop(name, None)


def hidden_names(spec: dict[str, Any], environ: Mapping[str, str]) -> list[str]:
    """The variables that the task must not see: Ork's own (tokens, URLs), and secrets."""
    own = _own_names if environ is _came_with else _names_of_ork(environ)
    if not spec["inputs"] and not spec["env"]:
        return list(own)
    bounds = [*(spec["inputs"] or {}).values(), *spec["env"].values()]
    secrets = {bound["secret"] for bound in bounds if "secret" in bound}
    return [*own, *(name for name in secrets.difference(own) if name in environ)]


def task_environment(spec: dict[str, Any], inherited: Mapping[str, str], bindings: Bindings) -> dict[str, str]:
    """The environment of the task: the worker's without Ork's own variables, and what the spec adds."""
    if inherited is _came_with and not spec["inputs"] and not spec["env"]:
        env = _without_own.copy()
    else:
        env = dict(inherited)
        for name in hidden_names(spec, inherited):
            del env[name]
    env.update(additions(spec, inherited, bindings))
    return env


def additions(spec: dict[str, Any], inherited: Mapping[str, str], bindings: Bindings | None) -> dict[str, str]:
    """The variables that the spec adds to the inherited ones. `bindings` read the values of its `env`, if it has
    any."""
    env = {}
    if spec.get("python"):
        env.update(_activated(spec["python"], inherited.get("PATH", os.defpath)))
    if spec.get("traceparent"):
        env["TRACEPARENT"] = spec["traceparent"]
    for name, bound in spec["env"].items():
        assert bindings is not None
        env[name] = _text(bindings.value(bound))
    # Last, because the attempt's id is also the tag by which its processes are found.
    own = _own_variables(spec)
    return env | own if env else own


def _activated(python: str, path: str) -> dict[str, str]:
    """The variables of an activated virtual environment, whose programs are found first."""
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
    """The attempt's id without its number, the same for every attempt of the task."""
    return str(spec["attempt"]).rpartition("/")[0]


def _names_of_ork(environ: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name for name in environ if name.startswith("ORK_"))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else dumps(value)
