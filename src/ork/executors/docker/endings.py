"""The end of a container as entries of a status document. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NEVER = "0001-01-01"
_SIGNALS = {130: "SIGINT", 134: "SIGABRT", 137: "SIGKILL", 139: "SIGSEGV", 143: "SIGTERM"}


def has_started(container: Mapping[str, Any]) -> bool:
    """True if a start of its program was attempted."""
    return not str(container["State"].get("StartedAt", _NEVER)).startswith(_NEVER)


def started_at(container: Mapping[str, Any]) -> str:
    return _to_microseconds(container["State"]["StartedAt"])


def finished_at(container: Mapping[str, Any]) -> str:
    """The end time according to the engine, since the scheduler may have been started much later."""
    return _to_microseconds(container["State"]["FinishedAt"])


def _to_microseconds(engine_time: str) -> str:
    """Engines report nanoseconds without trailing zeros."""
    seconds, _, fraction = engine_time.rstrip("Z").partition(".")
    return f"{seconds}.{fraction[:6]:0<6}Z"


def is_running(container: Mapping[str, Any]) -> bool:
    state = container["State"]
    return bool(state.get("Running") or state.get("Paused") or state.get("Restarting"))


def failed(kind: str, message: str, *, exit_code: int | None = None, tail: list[str] | None = None) -> dict[str, Any]:
    detail = None if tail is None else {"tail": tail}
    return {
        "state": "failed",
        "exit_code": exit_code,
        "failure": {"kind": kind, "message": message, "detail": detail},
    }


def success(output: dict[str, Any] | None) -> dict[str, Any]:
    return {"state": "success", "exit_code": 0, "output": output}


def timed_out(seconds: float) -> dict[str, Any]:
    failure = {"kind": "timeout", "message": f"timed out after {seconds:g}s", "detail": None}
    return {"state": "timed_out", "failure": failure}


def stopped(why: str) -> dict[str, Any]:
    failure = {"kind": "cancelled", "message": f"stopped: {why}", "detail": None}
    return {"state": "stopped", "failure": failure}


def ended_badly(container: Mapping[str, Any], memory: int | None, tail: list[str]) -> dict[str, Any]:
    """A non-zero exit code, with the last lines of the log."""
    state = container["State"]
    code = int(state["ExitCode"])
    return failed(
        "exit",
        exit_words(code, is_out_of_memory=bool(state.get("OOMKilled")), memory=memory),
        exit_code=code,
        tail=tail,
    )


def exit_words(code: int, *, is_out_of_memory: bool = False, memory: float | None = None) -> str:
    """A sentence about an exit code."""
    if is_out_of_memory:
        limit = f", more than {memory / (1 << 20):g}Mi" if memory else ""
        return f"out of memory{limit}: exit code {code}"
    signal = f", killed by {_SIGNALS[code]}" if code in _SIGNALS else ""
    return f"exit code {code}{signal}"
