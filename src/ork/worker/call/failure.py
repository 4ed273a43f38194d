"""Describes an exception to the author of the code: the frames of the project, with the position in the line."""

from __future__ import annotations

import os
import sys

from ork.sdk.errors import TaskError
from ork.worker.call.packages import blamed_on_hidden
from ork.worker.call.results import storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType, TracebackType
    from typing import Any

_PACKAGE = os.path.abspath(__file__).rsplit("/", 3)[0]
_OWN_FOLDERS = (_PACKAGE + "/worker/", _PACKAGE + "/sdk/")
_MOST_FRAMES = 20
_MOST_CAUSES = 3
_CAUSE_CHARACTERS = 500
_LINE_CHARACTERS = 500
_FOREIGN = ("/site-packages/", "/dist-packages/", "/.venv/", "/lib/python")


def describe(error: BaseException, root: str, inputs: dict[str, str], paths: Sequence[str] = ()) -> dict[str, Any]:
    """The failure as JSON data, for the status document."""
    message = _message(error)
    name = type(error).__name__
    detail: dict[str, Any] = {
        "type": storable(name, 200),
        "message": message,
        "frames": _frames(error, root, paths),
        "inputs": {storable(key, 200): storable(text, 200) for key, text in inputs.items()},
    }
    causes = [_cause(each, root, paths) for each in _causes(error)]
    if causes:
        detail["causes"] = causes
    if isinstance(error, TaskError):
        sentence = message or name
        if not error.retry:
            detail["retry"] = False
    else:
        blame = blamed_on_hidden(error, root, paths) or _missing_variable(error)
        sentence = _sentence(name, message, blame)
    return {"kind": "exception", "message": storable(sentence), "detail": detail}


def print_traceback(error: BaseException) -> None:
    """Print the whole traceback to the log, without Ork's own frames above the user's code."""
    import traceback

    sys.stdout.flush()
    start = error.__traceback__
    while start is not None and start.tb_next is not None and not _is_users(start.tb_frame):
        start = start.tb_next
    try:
        traceback.print_exception(type(error), error, start)
    except Exception:
        sys.stderr.write(f"{type(error).__name__} (its traceback could not be printed)\n")


def _sentence(name: str, message: str, blame: str | None) -> str:
    sentence = f"{name}: {message}" if message else name
    return f"{sentence} ({blame})" if blame else sentence


def _missing_variable(error: BaseException) -> str | None:
    """A hint for a missing environment variable: which ones tasks inherit, and how to pass more."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if type(error) is not KeyError or last is None or last.tb_frame.f_globals is not vars(os):
        return None
    name = error.args[0] if error.args else ""
    return f"tasks do not inherit this variable: set it with `env`, or list it as `pass_env: [{name}]` in ork.yaml"


def _causes(error: BaseException) -> list[BaseException]:
    """The chain of causes, nearest first. It may be circular."""
    found = [error]
    for current in found:  # grows during iteration
        for cause in _direct_causes(current):
            if len(found) > _MOST_CAUSES:
                return found[1:]
            if not any(cause is known for known in found):
                found.append(cause)
    return found[1:]


def _direct_causes(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        yield from error.exceptions
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None:
        yield before


def _cause(error: BaseException, root: str, paths: Sequence[str]) -> dict[str, Any]:
    return {
        "type": storable(type(error).__name__, 200),
        "message": storable(_message(error), _CAUSE_CHARACTERS),
        "frames": _frames(error, root, paths)[-1:],
    }


def _message(error: BaseException) -> str:
    try:
        return storable(str(error))
    except Exception:
        return "(its message could not be made)"


def _frames(error: BaseException, root: str, paths: Sequence[str]) -> list[dict[str, Any]]:
    """The frames of the project's files, or all frames if there are none; outermost first."""
    folders = (root, *paths)
    places = []
    current = error.__traceback__
    while current is not None:
        if _is_users(current.tb_frame):
            places.append(current)
        current = current.tb_next
    own = [place for place in places if _is_below(place.tb_frame.f_code.co_filename, folders)]
    frames = [_frame(place, folders) for place in (own or places)[-_MOST_FRAMES:]]
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        frames.append(_syntax_frame(error, folders))
    return frames


def frames_below(error: BaseException, root: str, paths: Sequence[str] = ()) -> int:
    """The number of library frames below the last frame of the project; 0 if there is no such frame."""
    below, found = 0, None
    current = error.__traceback__
    while current is not None:
        below += 1
        if _is_below(current.tb_frame.f_code.co_filename, (root, *paths)):
            below, found = 0, current
        current = current.tb_next
    return 0 if found is None else below


def _is_users(frame: FrameType) -> bool:
    """True if the frame is not of the worker, the import machinery, or the event loop of an async function."""
    name = frame.f_code.co_filename
    return not (name.startswith((*_OWN_FOLDERS, "<frozen importlib")) or "/asyncio/" in name or "/importlib/" in name)


def _is_below(name: str, folders: Sequence[str]) -> bool:
    return any(
        name.startswith(folder.rstrip("/") + "/") and not any(part in name[len(folder) :] for part in _FOREIGN)
        for folder in folders
    )


def _frame(place: TracebackType, folders: Sequence[str]) -> dict[str, Any]:
    code = place.tb_frame.f_code
    source = _source_line(code.co_filename, place.tb_lineno)
    return {
        "file": _shown_name(code.co_filename, folders),
        "line": place.tb_lineno,
        "function": storable(code.co_name, 200),
        "source": storable(source, _LINE_CHARACTERS),
        "caret": _caret(place, source),
    }


def _syntax_frame(error: SyntaxError, folders: Sequence[str]) -> dict[str, Any]:
    source = (error.text or "").rstrip("\n")
    start = (error.offset or 1) - 1
    end = error.end_offset - 1 if error.end_offset and error.end_lineno == error.lineno else start + 1
    return {
        "file": _shown_name(str(error.filename), folders),
        "line": error.lineno,
        "function": "<module>",
        "source": storable(source, _LINE_CHARACTERS),
        "caret": [start, max(end, start + 1)] if 0 <= start < _LINE_CHARACTERS else None,
    }


def _source_line(name: str, number: int) -> str:
    from linecache import getline

    return getline(name, number).rstrip("\n")


def _caret(place: TracebackType, source: str) -> list[int] | None:
    """Columns [start, end) of the expression in its line; None if the interpreter does not know them."""
    positions = list(place.tb_frame.f_code.co_positions())
    instruction = place.tb_lasti // 2
    if not 0 <= instruction < len(positions):
        return None
    line, end_line, start, end = positions[instruction]
    if line != place.tb_lineno or start is None or end is None:
        return None
    # The interpreter counts bytes of UTF-8.
    data = source.encode("utf-8", "surrogateescape")
    first = len(data[:start].decode("utf-8", "replace"))
    last = len(data[:end].decode("utf-8", "replace")) if end_line == line else len(source)
    return [first, last] if first < last <= _LINE_CHARACTERS else None


def _shown_name(name: str, folders: Sequence[str]) -> str:
    """The path of a project file relative to the workflow's folder, of any other file the full path."""
    return storable(os.path.relpath(name, folders[0]) if _is_below(name, folders) else name, 1000)
