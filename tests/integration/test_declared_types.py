"""Types a task declares, checked by real workers: before a command starts, and when a task has returned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ork.model.type_text import parse_type
from tests.integration.workshop import Workshop, in_workshop

TYPES = {"Row": parse_type("{qty: int}")}


def declared(*, output: str | None = None, given: str | None = None) -> dict[str, Any]:
    return {
        "output_type": output and parse_type(output),
        "input_type": given and parse_type(given),
        "types": TYPES,
    }


ROWS = '{"rows": [{"qty": 1}, {"qty": "x"}]}'


def assert_wrong_row(status: dict[str, Any]) -> None:
    failure = status["failure"]
    assert (status["state"], failure["kind"]) == ("failed", "output")
    assert failure["message"] == 'output.rows[1].qty: expected int, got "x" (by `output_type`)'
    assert failure["detail"] == {"path": "output.rows[1].qty", "expected": "int", "actual": '"x"'}


@in_workshop
async def test_a_function_that_returns_something_else_fails_with_the_field(shop: Workshop) -> None:
    shop.write("tasks.py", f"def main():\n    return {ROWS}\n")
    assert_wrong_row(await shop.run(**declared(output="{rows: list[Row]}")))


@in_workshop
async def test_a_command_that_gives_something_else_fails_with_the_field(shop: Workshop) -> None:
    assert_wrong_row(await shop.run(argv=["echo", ROWS], **declared(output="{rows: list[Row]}")))


@pytest.mark.parametrize("argv", [["true"], None], ids=["command", "function"])
def test_no_output_is_none(argv: list[str] | None, tmp_path: Path) -> None:
    @in_workshop
    async def run(shop: Workshop) -> None:
        shop.write("tasks.py", "def main():\n    pass\n")
        what = {"argv": argv} if argv else {}
        assert (await shop.run(shop.attempt("a"), **what, **declared(output="none")))["state"] == "success"
        assert (await shop.run(shop.attempt("b"), **what, **declared(output="int?")))["state"] == "success"
        failed = await shop.run(shop.attempt("c"), **what, **declared(output="int"))
        assert failed["failure"]["message"] == "output: expected int, got null (by `output_type`)"

    run(tmp_path)


@in_workshop
async def test_what_fits_is_stored_as_ever(shop: Workshop) -> None:
    shop.write(
        "tasks.py", "from datetime import date\ndef main():\n    return {'rows': [], 'day': date(2026, 1, 31)}\n"
    )
    status = await shop.run(**declared(output="{rows: list[Row], day: date}"))
    assert status["output"] == {"inline": '{"rows":[],"day":"2026-01-31"}'}


@in_workshop
async def test_a_command_is_not_started_with_another_input(shop: Workshop) -> None:
    what = {"argv": ["touch", "started"], **declared(given="list[Row]")}
    status = await shop.run(shop.attempt("a"), **what, upstream={"up": {"value": [{"qty": None}]}})
    assert status["failure"]["kind"] == "input"
    assert status["failure"]["message"] == "input[0].qty: expected int, got null (by `input_type`)"
    assert not (shop.root / "started").exists()
    status = await shop.run(shop.attempt("b"), **what, upstream={"up": {"value": [{"qty": 1}]}})
    assert status["state"] == "success"
    assert (shop.root / "started").exists()


@in_workshop
async def test_a_function_is_not_called_with_another_argument(shop: Workshop) -> None:
    shop.write("tasks.py", "def main(rows, other):\n    return rows\n")
    given = {"other": {"value": "x"}, "rows": {"value": [{"qty": "x"}]}}
    status = await shop.run(shop.attempt("a"), inputs=given, **declared(given="{rows: list[Row]}"))
    assert status["failure"]["kind"] == "input"
    assert status["failure"]["message"] == 'argument `rows`[0].qty: expected int, got "x" (by `input_type`)'
    given["rows"] = {"missing": True}
    assert (await shop.run(shop.attempt("b"), inputs=given, **declared(given="{rows: list[Row]}")))[
        "state"
    ] == "success"
