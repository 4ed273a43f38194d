"""Functions of every kind, for a task each (see `test_ways_to_call`)."""

from __future__ import annotations

import functools
import os
import signal
import sys
from typing import Any

NOT_A_FUNCTION = "text"


def returns_a_number() -> Any:
    return 1


def returns_nothing() -> Any:
    return None


def returns_text() -> Any:
    return 'a "word" \\ é\n'


def returns_much() -> Any:
    return [1, -2.5, True, None, {"a": [{}], "2": "b"}]


def returns_a_large_number() -> Any:
    return 10**300


def returns_too_large_a_number() -> Any:
    return 10**500


def returns_infinity() -> Any:
    return float("inf")


def returns_long_text() -> Any:
    return "x" * 5_000


def returns_text_for_an_object() -> Any:
    return "x" * 100_000


def returns_too_much() -> Any:
    return "x" * 2_000_000


def returns_a_set() -> Any:
    return {1, 2}


def returns_what_is_too_deep() -> Any:
    value: list[Any] = []
    for _ in range(100):
        value = [value]
    return value


def returns_objects() -> Any:
    import dataclasses
    import datetime

    return [dataclasses.make_dataclass("Point", ["x"])(1), datetime.date(2024, 1, 1)]


def raises() -> Any:
    raise ValueError("no")


def raises_for_a_cause() -> Any:
    try:
        raises()
    except ValueError as error:
        raise KeyError("other") from error


def leaves() -> Any:
    sys.exit()


def leaves_badly() -> Any:
    sys.exit(3)


def leaves_with_words() -> Any:
    sys.exit("words")


def ends() -> Any:
    os._exit(5)


def ends_well() -> Any:
    os._exit(0)


def is_killed() -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def yields() -> Any:
    yield 1


async def waits() -> Any:
    return 2


async def yields_and_waits() -> Any:
    yield 3


def returns_what_is_to_be_awaited() -> Any:
    return waits()


def prints() -> Any:
    print("a line")
    sys.stdout.write("half a line")
    sys.stderr.write("an error")


def does_something_at_the_end() -> Any:
    import atexit
    import threading

    atexit.register(print, "at the end")
    threading.Thread(target=print, args=("a thread",)).start()
    return 1


def has_defaults(a: int = 1, *, b: int = 2) -> Any:
    return [a, b]


def takes_anything(*values: Any, **named: Any) -> Any:
    return [values, named]


def wants_its_context(ctx: Any) -> Any:
    return [ctx.task_id, ctx.attempt, ctx.params]


def takes_a_parameter(size: int) -> Any:
    return size


def is_given_too_little(missing: Any) -> Any:
    return missing


def _wrapped(function: Any) -> Any:
    @functools.wraps(function)
    def around() -> Any:
        return function(1)

    return around


@_wrapped
def is_wrapped(size: int) -> Any:
    return size


class _Callable:
    def __call__(self) -> Any:
        return "called"

    @staticmethod
    def inner() -> Any:
        return "inner"


is_an_object = _Callable()
is_built_in = dict


def closes_its_stream() -> Any:
    sys.stdout.close()
    return 1


def has_no_stream() -> Any:
    sys.stdout = None  # type: ignore[assignment]
    return 1


def changes_its_environment() -> Any:
    os.environ["ORK_TASK_NAME"] = "other"
    del os.environ["ORK_RUN_ID"]
    return _environment_of_others()


def _environment_of_others() -> list[str]:
    with os.popen("env") as told:
        return sorted(told.read().split("\n"))


def _kind_of_file(number: str) -> str:
    try:
        return os.readlink(f"/dev/fd/{number}").split(":")[0]
    except OSError:
        return ""  # the one by which they were listed


def sees() -> Any:
    """All that differs from process to process left out."""
    with open("/proc/self/environ") as environ, open("/proc/self/status") as status:
        marks = [word for word in environ.read().split("\0") if word.startswith("ORK_ATTEMPT_ID=")]
        signals = [line for line in status if line.startswith("Sig") and not line.startswith("SigQ")]
    return {
        "environment": sorted(os.environ.items()),
        "environment of others": _environment_of_others(),
        "marks": marks,
        "folder": os.getcwd(),
        "path": sys.path,
        "argv": sys.argv,
        "modules": sorted(sys.modules),
        "finders": [type(finder).__name__ for finder in sys.meta_path],
        "module": [__name__, __file__, str(__spec__ and __spec__.origin), sys.modules[__name__].__dict__ is globals()],
        "open files": sorted(filter(None, map(_kind_of_file, os.listdir("/dev/fd")))),
        "is a group": os.getpgid(0) == os.getpid(),
        "streams": [str(type(sys.stdout)), sys.stdout.encoding, sys.stdout.errors, sys.stdout.line_buffering],
        "signals": signals,
    }
