"""How a function that fails tells of it: the sentence, the place, the cause."""

from __future__ import annotations

import json
from textwrap import dedent
from typing import Any

from tests.integration.workshop import Workshop, in_every_workshop


async def call(shop: Workshop, source: str, **spec: Any) -> dict[str, Any]:
    shop.write("tasks.py", dedent(source))
    return await shop.run(**spec)


def output(status: dict[str, Any]) -> Any:
    assert status["state"] == "success", status
    return json.loads(status["output"]["inline"])


@in_every_workshop
async def test_a_parameter_without_a_value_is_told_by_name(shop: Workshop) -> None:
    status = await call(shop, "def main(day, rows):\n    pass\n", upstream={"extract": {"value": 1}})
    assert status["failure"]["kind"] == "input"
    assert status["failure"]["message"] == (
        "nothing to pass for the parameters `day`, `rows` of `main`; given: extract"
    )


@in_every_workshop
async def test_a_value_of_the_wrong_type_is_told_with_its_place(shop: Workshop) -> None:
    source = "from datetime import date\n\ndef main(days: list[date]):\n    pass\n"
    status = await call(shop, source, inputs={"days": {"value": ["2026-01-01", 12]}})
    assert status["failure"]["kind"] == "input"
    assert status["failure"]["message"] == "argument `days`[1]: expected a date such as 2026-01-31, got 12"


@in_every_workshop
async def test_an_async_failure_shows_the_users_frames_only(shop: Workshop) -> None:
    source = """
        import asyncio

        async def main():
            await asyncio.sleep(0)
            return {}["no"]
    """
    status = await call(shop, source)
    assert [frame["function"] for frame in status["failure"]["detail"]["frames"]] == ["main"]
    assert b"ork/worker" not in shop.log(shop.attempt())


@in_every_workshop
async def test_generators_are_refused_clearly(shop: Workshop) -> None:
    status = await call(shop, "def main():\n    yield 1\n")
    assert status["failure"]["kind"] == "output"
    assert "generator" in status["failure"]["message"]


@in_every_workshop
async def test_an_exception_brings_frames_with_carets_and_inputs(shop: Workshop) -> None:
    source = """
        def main(rows):
            return share(rows, 0)

        def share(rows, parts):
            return {"active": rows / parts}
    """
    status = await call(shop, source, inputs={"rows": {"value": 12}})
    failure = status["failure"]
    assert (failure["kind"], failure["message"]) == ("exception", "ZeroDivisionError: division by zero")
    inner = failure["detail"]["frames"][-1]
    assert (inner["file"], inner["line"], inner["function"]) == ("tasks.py", 6, "share")
    start, end = inner["caret"]
    assert inner["source"][start:end] == "rows / parts"
    assert failure["detail"]["inputs"] == {"rows": "12"}
    assert shop.log(shop.attempt()).startswith(b"Traceback (most recent call last):\n")


@in_every_workshop
async def test_a_syntax_error_is_shown_where_it_is(shop: Workshop) -> None:
    status = await call(shop, "def main(:\n    pass\n")
    frame = status["failure"]["detail"]["frames"][-1]
    assert status["failure"]["message"].startswith("SyntaxError")
    assert (frame["file"], frame["line"], frame["source"]) == ("tasks.py", 1, "def main(:")


@in_every_workshop
async def test_a_task_error_says_its_sentence_and_whether_to_try_again(shop: Workshop) -> None:
    source = "from ork import TaskError\n\ndef main():\n    raise TaskError('no such customer', retry=False)\n"
    failure = (await call(shop, source))["failure"]
    assert failure["message"] == "no such customer"
    assert failure["detail"]["retry"] is False


@in_every_workshop
async def test_exits_are_told_by_their_code(shop: Workshop) -> None:
    for name, body, code, message in [
        ("a", "sys.exit(3)", 3, "exit code 3"),
        ("b", "sys.exit('nothing to do')", 1, "exit code 1"),
        ("c", "os._exit(4)", 4, "exit code 4"),
        ("d", "os._exit(0)", 0, "the process exited before the function returned"),
    ]:
        shop.write(f"{name}.py", f"import os, sys\n\ndef main():\n    {body}\n")
        status = await shop.run(shop.attempt(name), file=f"{name}.py")
        assert (status["state"], status["exit_code"]) == ("failed", code)
        assert (status["failure"]["kind"], status["failure"]["message"]) == ("exit", message)


@in_every_workshop
async def test_what_cannot_be_stored_is_refused_with_its_place(shop: Workshop) -> None:
    status = await call(shop, "def main():\n    return {'rows': [1, 2, 3, {4}]}\n")
    assert status["failure"]["kind"] == "output"
    assert status["failure"]["message"].startswith("returned set[…] at .rows[3]: cannot be stored as JSON")


@in_every_workshop
async def test_a_missing_file_module_or_function_is_a_clear_failure(shop: Workshop) -> None:
    shop.write("tasks.py", "def extract():\n    pass\n")
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("a", {"file": "gone.py"}, f"there is no file gone.py in {shop.root}"),
        ("b", {"file": None, "module": "no_such"}, "there is no module `no_such`"),
        ("c", {"function": "extrct"}, "tasks.py has no function `extrct`: did you mean `extract`?"),
    ]
    for name, spec, message in cases:
        status = await shop.run(shop.attempt(name), **spec)
        assert (status["failure"]["kind"], status["failure"]["message"]) == ("start", message)


@in_every_workshop
async def test_hostile_messages_do_no_harm(shop: Workshop) -> None:
    status = await call(shop, "def main():\n    raise ValueError('\\x00\\ud800' + 'x' * 100_000)\n")
    assert status["failure"]["message"].startswith("ValueError: \\0\\ud800xxx")
    assert len(status["failure"]["message"]) <= 4000


@in_every_workshop
async def test_a_file_that_hides_a_standard_module_is_named_when_that_breaks_the_task(shop: Workshop) -> None:
    shop.write("queue.py", "class Job: pass\n")
    shop.write("tasks.py", "import concurrent.futures\n\ndef main():\n    concurrent.futures.ThreadPoolExecutor(1)\n")
    attempt = shop.attempt()
    failure = (await shop.run(attempt))["failure"]
    assert failure["kind"] == "exception"
    assert "queue.py" in failure["message"]
    assert "hides the standard module `queue`" in failure["message"]
    assert b"Traceback" in shop.log(attempt)
    shop.write("tasks.py", "from types import Order\n\ndef main():\n    pass\n")
    shop.write("types.py", "class Order: pass\n")
    own = shop.attempt("own")
    failure = (await shop.run(own))["failure"]
    assert "types.py" in failure["message"]
    assert "hides the standard module `types`" in failure["message"]
    assert b"Traceback" in shop.log(own)


@in_every_workshop
async def test_a_failure_that_has_nothing_to_do_with_a_hidden_module_does_not_name_it(shop: Workshop) -> None:
    shop.write("queue.py", "class Job: pass\n")
    shop.write("tasks.py", "from queue import Job\n\ndef main():\n    raise ValueError('no')\n")
    assert (await shop.run())["failure"]["message"] == "ValueError: no"


CHAINED = """
def read(row):
    try:
        return row["x"]
    except KeyError as error:
        raise ValueError("no x") from error

def main():
    try:
        read({})
    except ValueError:
        raise RuntimeError("cannot go on")
"""


def told(failure: dict[str, Any]) -> list[tuple[str, str, list[str]]]:
    return [
        (cause["type"], cause["message"], [f"{frame['file']}:{frame['line']}" for frame in cause["frames"]])
        for cause in failure["detail"]["causes"]
    ]


@in_every_workshop
async def test_what_caused_an_exception_is_told_with_its_place(shop: Workshop) -> None:
    shop.write("tasks.py", CHAINED)
    failure = (await shop.run())["failure"]
    assert failure["message"] == "RuntimeError: cannot go on"
    assert told(failure) == [("ValueError", "no x", ["tasks.py:6"]), ("KeyError", "'x'", ["tasks.py:4"])]


@in_every_workshop
async def test_the_exceptions_of_a_group_are_told_and_no_more_than_three(shop: Workshop) -> None:
    shop.write(
        "tasks.py",
        "def bad(n):\n    try:\n        return {}[n]\n    except KeyError as error:\n        return error\n\n"
        "def main():\n    raise ExceptionGroup('all of it', [bad(n) for n in range(9)])\n",
    )
    failure = (await shop.run())["failure"]
    assert told(failure) == [("KeyError", str(number), ["tasks.py:3"]) for number in range(3)]


@in_every_workshop
async def test_a_cause_that_was_suppressed_or_leads_round_in_a_circle_does_no_harm(shop: Workshop) -> None:
    shop.write(
        "tasks.py",
        "def main():\n    try:\n        1 / 0\n    except ZeroDivisionError:\n        raise ValueError('x') from None\n",
    )
    assert "causes" not in (await shop.run())["failure"]["detail"]
    shop.write(
        "tasks.py",
        "def main():\n    a, b = ValueError('a'), KeyError('b')\n    a.__cause__, b.__cause__ = b, a\n    raise a\n",
    )
    failure = (await shop.run(shop.attempt("circle")))["failure"]
    assert [cause[0] for cause in told(failure)] == ["KeyError"]
