"""Values a spec binds: given as they are, kept in a large object, secret, missing, or lists and maps of such."""

from __future__ import annotations

from ork.errors import ObjectsError
from ork.objects.json_text import dumps, strict_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ork.objects.attempt_documents import AttemptDocuments

HIDDEN = "***"


class InputError(Exception):
    """A sentence saying why the task's input could not be put together."""


class Bindings:
    """Opens bound values. An object is read once, however many values point into it.

    Secrets are taken from `environ`, the worker's own environment, which the task does not get to see.
    """

    def __init__(self, objects: AttemptDocuments, output_limit: int, environ: dict[str, str]) -> None:
        self._objects = objects
        self._limit = output_limit
        self.environ = environ
        self._opened: dict[str, Any] = {}

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
        if "list" in bound:
            return [self.value(item) for item in bound["list"]]
        if "map" in bound:
            return {name: self.value(member) for name, member in bound["map"].items()}
        return None

    def json_bytes(self, bound: dict[str, Any]) -> bytes:
        """The value as JSON text; a whole object is passed on as it is stored, without being read into memory twice."""
        if "object" in bound and not bound.get("path"):
            return self._bytes(bound["object"])
        return dumps(self.value(bound)).encode()

    def _whole(self, key: str) -> Any:
        if key not in self._opened:
            self._opened[key] = strict_json(self._bytes(key), max_size=self._limit)
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


def param_bounds(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """All params of the run, by name; the values of sensitive ones are in the worker's environment."""
    bounds = {name: {"value": value} for name, value in spec["params"].items()}
    for name in spec.get("sealed_params", ()):
        bounds[name] = {"secret": f"ORK_PARAM_{name}", "json": True, "path": []}
    return bounds


def is_missing(bound: dict[str, Any]) -> bool:
    """An upstream task that did not succeed; its value is None whatever type was expected."""
    return "missing" in bound


def _follow(value: Any, path: list[str | int]) -> Any:
    walked = ""
    for step in path:
        try:
            if isinstance(value, dict) != isinstance(step, str):
                raise TypeError
            value = value[step]
        except (KeyError, IndexError, TypeError):
            raise InputError(f"there is no {step!r} in the upstream output{walked and ' at ' + walked}") from None
        walked += f"[{step}]" if isinstance(step, int) else f".{step}"
    return value
