"""Paths in a result that its annotation calls `ork.File`."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def with_files(result: Any, annotation: Any, function: Callable[..., Any]) -> Any:
    """The result, with an `ork.File` for each path where the function's return annotation has one."""
    from ork.worker.convert.values import resolve_annotation

    resolved = resolve_annotation(annotation, function)
    return result if resolved is None else _with_files(result, resolved)


def _with_files(value: Any, annotation: Any) -> Any:
    import typing

    from ork.sdk.files import File

    if annotation is File:
        return File(value) if _is_path(value) else value
    arguments = typing.get_args(annotation)
    if isinstance(value, dict) and len(arguments) == 2:
        return {name: _with_files(member, arguments[1]) for name, member in value.items()}
    if isinstance(value, (list, tuple)) and arguments and not hasattr(value, "_fields"):
        return [_with_files(item, arguments[0]) for item in value]
    if _is_path(value) and File in arguments:
        return File(value)
    return value


def _is_path(value: Any) -> bool:
    paths = sys.modules.get("pathlib")
    return paths is not None and isinstance(value, paths.PurePath)
