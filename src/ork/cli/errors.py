"""Turns errors into exit codes and messages (or JSON)."""

from __future__ import annotations

import json
import sys
from typing import Any

from ork.errors import DefinitionError, NotFoundError, OrkError, RefusedError, SettingsDifferError, UsageError

DONE = 0
FAILED = 1
WRONG_USE = 2
NOT_FOUND = 3
REFUSED = 4
WAITING = 5  # for a person
TIMED_OUT = 124
INTERRUPTED = 130


def exit_code(error: OrkError) -> int:
    match error:
        case DefinitionError() | UsageError():
            return WRONG_USE
        case NotFoundError():
            return NOT_FOUND
        case RefusedError():
            return REFUSED
        case _:
            return FAILED


def report(error: OrkError, *, as_json: bool) -> int:
    """Prints the error with its hint: as JSON on stdout, or as text on stderr. Returns the exit code."""
    if as_json:
        print_json_error(error)
        return exit_code(error)
    if isinstance(error, DefinitionError) and error.problems:
        from ork.cli.definitions import print_problems

        print_problems(error.problems)
        return exit_code(error)
    code = f"[{error.code}]" if isinstance(error, SettingsDifferError) else ""  # the docs refer to it
    _print_hanging(f"error{code}: ", _safe(error.message))
    if error.hint:
        _print_hanging("  ", _safe(error.hint))
    return exit_code(error)


def _print_hanging(label: str, text: str) -> None:
    """Prints the text after the label; on a terminal, long lines are wrapped and indented."""
    if not sys.stderr.isatty():
        print(f"{label}{text}", file=sys.stderr)
        return
    from ork.cli.paint import line
    from ork.cli.session import palette

    on = palette(sys.stderr)
    first, *more = text.splitlines() or [""]
    on.write(sys.stderr, [*on.hang(line(label, first)), *(each for part in more for each in on.hang(line("", part)))])


def report_usage(message: str, hint: str | None, *, as_json: bool) -> int:
    return report(UsageError(message, hint=hint), as_json=as_json)


def report_internal(error: BaseException, *, as_json: bool) -> int:
    """Reports a bug in Ork in one line, with a hint how to see the traceback."""
    return report(
        OrkError(
            f"internal error: {type(error).__name__}: {error}", hint="set ORK_DEBUG=1 to see where", code="ORK899"
        ),
        as_json=as_json,
    )


def print_json_error(error: OrkError) -> None:
    """Prints the error as JSON; a DefinitionError with all its problems."""
    shape: dict[str, Any] = {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
    if isinstance(error, DefinitionError) and error.problems:
        from ork.definition.problems import Problem, to_json

        shape["problems"] = [to_json(problem) for problem in error.problems if isinstance(problem, Problem)]
    print(json.dumps(shape, ensure_ascii=sys.stdout.encoding == "ascii"))


def _safe(text: str) -> str:
    from ork.cli.paint import visible

    return "\n".join(visible(part) for part in text.splitlines())
