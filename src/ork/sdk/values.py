"""Values in definitions: JSON, references and secrets."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SIMPLE = (str, int, float, bool, type(None))


def ref(path: str, *, as_file: bool = False) -> dict[str, str]:
    """A value known only when the task starts: `ref("tasks.extract.output.rows")`, `ref("params.day")`. With `as_file`, the path of a
    file with the value."""
    return {"ref": path, "as": "file"} if as_file else {"ref": path}


def secret(name: str) -> dict[str, str]:
    """A secret. Its value is resolved at launch and never stored."""
    return {"secret": name}


def plain(value: Any, where: str) -> Any:
    """The value as JSON: dates as ISO text, durations as seconds, enums by value. Raises TypeError naming the position."""
    if type(value) in _SIMPLE:
        return value
    if isinstance(value, dict):
        return {_key(key, where): plain(below, f"{where}.{key}") for key, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(below, f"{where}[{index}]") for index, below in enumerate(value)]
    if hasattr(type(value), "_member_map_"):  # an enum
        return plain(value.value, where)
    if isinstance(value, _SIMPLE):  # a subclass of one of them
        return next(kind(value) for kind in (str, int, float) if isinstance(value, kind))
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "total_seconds"):
        return value.total_seconds()
    raise TypeError(f"{where}: {type(value).__name__} cannot be part of a definition")


def _key(key: Any, where: str) -> str:
    if isinstance(key, str):
        return key
    raise TypeError(f"{where}: a key must be text, not {type(key).__name__}")
