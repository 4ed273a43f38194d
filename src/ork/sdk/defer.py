"""Deferring to external jobs: a task returns `ork.defer(…)` and ends; its attempt stays active without a worker.

    def train(ctx):
        job = api.submit(...)
        return ork.defer(ork.http_job(f"{API}/jobs/{job}", done={"path": "state", "equals": "finished"},
                                      failed={"path": "state", "in": ["failed", "aborted"]}, output="result"))

All jobs must finish; their results, one or a list in order, are the task's output.
"""

from __future__ import annotations

from ork.sdk.web import check_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULT_EVERY_SECONDS = 10.0
MIN_EVERY_SECONDS = 0.05
MAX_JOBS = 1000
MAX_BYTES = 512 * 1024

_OPS = ("equals", "not_equals", "lt", "le", "gt", "ge", "in", "exists")


class Deferred:
    """Returned by a task instead of its output: the jobs that produce the output."""

    __slots__ = ("jobs",)

    def __init__(self, jobs: list[dict[str, Any]]) -> None:
        if not jobs:
            raise ValueError("nothing to wait for: give at least one job")
        if len(jobs) > MAX_JOBS:
            raise ValueError(f"more than {MAX_JOBS} jobs")
        self.jobs = [checked_job(job) for job in jobs]


def defer(*jobs: dict[str, Any]) -> Deferred:
    """Defer to jobs made by `http_job` and `call_job`."""
    return Deferred(list(jobs))


def http_job(
    url: str,
    *,
    method: str = "GET",
    headers: dict[str, Any] | None = None,
    every: float = DEFAULT_EVERY_SECONDS,
    done: dict[str, Any] | None = None,
    failed: dict[str, Any] | None = None,
    output: str | None = None,
    cancel: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A job with a status URL, polled at intervals of `every` seconds. A header may be {"secret": NAME}.

    `done` and `failed` are conditions on the JSON response: {"path": "state", "equals": "finished"}, with the
    comparisons
    of `when`. Without `done`, status 200 means finished and 202 means running. `output` is the path of the result in
    the
    response (default: all of it). `cancel` is {"url": …, "method": "DELETE"}.
    """
    job = {"http": url, "method": method, "headers": headers, "every": every}
    return checked_job({**job, "done": done, "failed": failed, "output": output, "cancel": cancel})


def call_job(
    function: str,
    args: dict[str, Any] | None = None,
    *,
    every: float = DEFAULT_EVERY_SECONDS,
    cancel: str | None = None,
) -> dict[str, Any]:
    """A job polled by a function of the project (`module:function`), called with `args` at intervals of `every`
    seconds in a short process.

    The function returns None while the job runs, or else its result; an exception fails the attempt. `cancel` names a
    function that is called with the same arguments when the task is cancelled.
    """
    return checked_job({"call": function, "args": args, "every": every, "cancel": cancel})


def checked_job(job: Any) -> dict[str, Any]:
    """The job with defaults, as plain JSON types. Raises ValueError if it is invalid."""
    if not isinstance(job, dict) or ("http" in job) == ("call" in job):
        raise ValueError("a job is a map with `http` (a status URL) or `call` (a function)")
    known = _HTTP_KEYS if "http" in job else _CALL_KEYS
    unknown = sorted(set(job) - known)
    if unknown:
        raise ValueError(f"a job has no key `{unknown[0]}`; known: {', '.join(sorted(known))}")
    every = job.get("every") or DEFAULT_EVERY_SECONDS
    if isinstance(every, bool) or not isinstance(every, (int, float)) or not MIN_EVERY_SECONDS <= every < 1e7:
        raise ValueError(f"`every` is a number of seconds, at least {MIN_EVERY_SECONDS}")
    made = {name: value for name, value in job.items() if value is not None} | {"every": every}
    _check_http(made) if "http" in job else _check_call(made)
    return made


def is_met(condition: dict[str, Any], value: Any) -> bool:
    """True if the value satisfies every comparison of the condition; a missing value satisfies none."""
    found = follow(value, condition.get("path", ""))
    is_there = found is not _NOTHING
    for op, wanted in condition.items():
        if op == "path":
            continue
        if op == "exists":
            if is_there is not bool(wanted):
                return False
        elif not is_there or not _compares(op, found, wanted):
            return False
    return True


def follow(value: Any, path: str) -> Any:
    """The value at the path (`state.jobs[0].id`), or `NOTHING`."""
    for step in _steps(path):
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return _NOTHING
    return value


_NOTHING: Any = object()
NOTHING = _NOTHING
_HTTP_KEYS = {"http", "method", "headers", "every", "done", "failed", "output", "cancel"}
_CALL_KEYS = {"call", "args", "every", "cancel"}


def _compares(op: str, found: Any, wanted: Any) -> bool:
    try:
        match op:
            case "equals":
                return bool(found == wanted)
            case "not_equals":
                return bool(found != wanted)
            case "in":
                return found in wanted
            case "lt":
                return bool(found < wanted)
            case "le":
                return bool(found <= wanted)
            case "gt":
                return bool(found > wanted)
            case _:
                return bool(found >= wanted)
    except TypeError:  # text and numbers cannot be compared
        return False


def _steps(path: str) -> list[str | int]:
    from re import fullmatch, split

    steps: list[str | int] = []
    for part in split(r"\.|(?=\[)", path):
        if part:
            index = fullmatch(r"\[(\d{1,9})\]", part)
            steps.append(int(index[1]) if index else part)
    return steps


def _check_http(job: dict[str, Any]) -> None:
    check_url(job["http"])
    for name in ("done", "failed"):
        if name in job:
            _check_condition(name, job[name])
    if not isinstance(job.get("headers", {}), dict):
        raise ValueError("`headers` is a map")
    if not isinstance(job.get("output", ""), str):
        raise ValueError("`output` is a path such as `result.rows`")
    cancel = job.get("cancel")
    if cancel is not None:
        if not isinstance(cancel, dict) or set(cancel) - {"url", "method", "headers"}:
            raise ValueError("`cancel` is a map with `url` and perhaps `method`")
        check_url(cancel.get("url"))


def _check_condition(name: str, condition: Any) -> None:
    if not isinstance(condition, dict) or not set(condition) - {"path"}:
        raise ValueError(f'`{name}` is a condition such as {{"path": "state", "equals": "finished"}}')
    unknown = sorted(set(condition) - {"path", *_OPS})
    if unknown:
        raise ValueError(f"`{name}` has an unknown comparison `{unknown[0]}`; known: {', '.join(_OPS)}")


def _check_call(job: dict[str, Any]) -> None:
    for name in ("call", "cancel"):
        target = job.get(name)
        if target is None and name == "cancel":
            continue
        module, colon, function = str(target).partition(":")
        if not colon or not all(part.isidentifier() for part in (*module.split("."), *function.split("."))):
            raise ValueError(f"`{name}` is a function named as `module:function`, not {str(target)[:100]!r}")
    if not isinstance(job.get("args", {}), dict):
        raise ValueError("`args` is a map of arguments")
