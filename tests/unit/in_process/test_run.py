"""`etl.run()`: the whole workflow here and now, by the same rules as everywhere else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ork import Context, TaskError, Workflow, ref, secret
from ork.errors import DefinitionError, UsageError


@dataclass
class Point:
    x: int
    day: date


@pytest.fixture
def etl() -> Workflow:
    return Workflow("etl")


def test_values_are_converted_as_between_processes(etl: Workflow) -> None:
    seen: list[Any] = []

    @etl.task
    def extract(day: date, point: Point) -> list[Point]:
        seen.append((day, point))
        return [Point(1, day), point]

    @etl.task
    def load(extract: list[Point], ctx: Context) -> int:
        seen.append(extract)
        return sum(point.x for point in extract)

    result = etl.run(day=date(2026, 1, 2), point={"x": 5, "day": "2026-01-03"})
    assert seen[0] == (date(2026, 1, 2), Point(5, date(2026, 1, 3)))
    assert seen[1] == [Point(1, date(2026, 1, 2)), Point(5, date(2026, 1, 3))]
    assert (result.status, result["load"]) == ("success", 6)
    assert result["extract"] == [{"x": 1, "day": "2026-01-02"}, {"x": 5, "day": "2026-01-03"}]


def test_params_are_checked_before_anything_runs(etl: Workflow) -> None:
    @etl.task
    def extract(count: int, name: str = "x") -> str:
        return name * count

    assert etl.run(count=2)["extract"] == "xx"
    for wrong in ({}, {"count": "two"}, {"count": 1, "nmae": "y"}):
        with pytest.raises(UsageError):
            etl.run(**wrong)


def test_a_wrong_definition_is_told_with_its_place(etl: Workflow) -> None:
    @etl.task(retires=2)  # type: ignore[call-overload,untyped-decorator]
    def extract() -> None: ...

    with pytest.raises(DefinitionError, match=r"test_run\.py:\d+:15: ORK101 `retires`"):
        etl.run()


def test_the_exception_of_a_task_is_raised_unless_check_is_false(etl: Workflow) -> None:
    @etl.task
    def extract() -> None:
        raise ZeroDivisionError("nothing there")

    @etl.task
    def load(extract: None) -> None: ...

    @etl.task(run_if="all_done")
    def tidy(load: None) -> str:
        return "tidied"

    with pytest.raises(ZeroDivisionError, match="nothing there"):
        etl.run()
    result = etl.run(check=False)
    assert result.status == "failed"
    assert {name: task.status for name, task in result.tasks.items()} == {
        "extract": "failed",
        "load": "skipped",
        "tidy": "success",
    }
    assert result["load"] is None
    assert result["tidy"] == "tidied"


def test_retries_happen_at_once_and_no_more_than_allowed(etl: Workflow) -> None:
    calls: list[int] = []

    @etl.task(retries=3, retry_delay="1h")
    def flaky(ctx: Context) -> int:
        calls.append(ctx.attempt)
        if len(calls) < 3:
            raise OSError("not yet")
        return ctx.attempt

    assert etl.run()["flaky"] == 3
    assert calls == [1, 2, 3]


def test_a_task_error_that_forbids_it_is_not_retried(etl: Workflow) -> None:
    calls: list[int] = []

    @etl.task(retries=3)
    def hopeless() -> None:
        calls.append(1)
        raise TaskError("no use", retry=False)

    with pytest.raises(TaskError, match="no use"):
        etl.run()
    assert len(calls) == 1


def test_fan_out_conditions_and_refs_are_those_of_the_engine(etl: Workflow) -> None:
    @etl.task
    def numbers() -> list[int]:
        return [3, 1, 2]

    @etl.task(foreach=numbers, concurrency=2)
    def square(item: int) -> int:
        return item * item

    @etl.task(parallel=3)
    def part(ctx: Context) -> list[int | None]:
        return [ctx.parallel_index, ctx.parallel_count]

    @etl.task(foreach=[])
    def nothing(item: int) -> int:
        return item

    @etl.task(when={"ref": "square[0]", "gt": 100})
    def large(square: list[int]) -> int:
        return sum(square)

    @etl.task(inputs={"first": ref("tasks.square.output[0]"), "hidden": secret("TEST_WORD")}, run_if="all_done")
    def last(first: int, hidden: str, large: int | None) -> list[Any]:
        return [first, hidden, large]

    (Path(etl.file).parent / ".env").write_text("TEST_WORD=word\n")
    result = etl.run()
    assert result["square"] == [9, 1, 4]
    assert result["part"] == [[0, 3], [1, 3], [2, 3]]
    assert result["nothing"] == []
    assert result["last"] == [9, "word", None]


@pytest.mark.slow
def test_commands_get_their_input_and_give_their_output(etl: Workflow, capfd: pytest.CaptureFixture[str]) -> None:
    etl.command("echo", ["cat"], inputs={"a": 1})
    etl.command(
        "file", ["sh", "-c", 'cat > "$ORK_OUTPUT_FILE"; echo said; echo "$WHO"'], depends_on="echo", env={"WHO": "me"}
    )
    etl.command("fails", ["sh", "-c", "exit 3"])
    result = etl.run(check=False)
    assert result["echo"] == result["file"] == {"a": 1}
    assert result.tasks["fails"].reason == "exit code 3"
    assert "said\nme\n" in capfd.readouterr().out


def test_approvals_are_approved_automatically(etl: Workflow) -> None:
    etl.approval("ok", "Really?", timeout="1s")

    @etl.task
    def after(ok: dict[str, Any]) -> bool:
        return bool(ok["approved"])

    assert etl.run()["after"] is True


def test_a_workflow_runs_another_and_gets_its_last_outputs(etl: Workflow) -> None:
    child = Workflow("child")

    @child.task
    def double(number: int) -> int:
        if number > 2:
            raise ValueError("too many")
        return number * 2

    etl.workflow("each", child, foreach=[1, 2], inputs={"number": ref("item")})
    assert etl.run()["each"] == [2, 4]
    etl.workflow("more", child, inputs={"number": 3})
    with pytest.raises(ValueError, match="too many"):
        etl.run()


def test_a_workflow_that_runs_itself_ends(etl: Workflow) -> None:
    etl.workflow("again", etl)
    with pytest.raises(TaskError, match="runs itself"):
        etl.run()


def test_a_workflow_known_only_by_name_cannot_run_here(etl: Workflow) -> None:
    etl.workflow("child", "somewhere_else")
    with pytest.raises(TaskError, match="somewhere_else is only named here"):
        etl.run()


def test_a_result_that_could_not_be_stored_fails(etl: Workflow) -> None:
    @etl.task
    def numbers() -> Iterator[int]:
        yield 1

    with pytest.raises(TaskError, match="generator"):
        etl.run()


def test_environment_variables_hold_for_the_task_alone(etl: Workflow) -> None:
    @etl.task(env={"GREETING": "hello"})
    def greet() -> str:
        return os.environ["GREETING"]

    assert etl.run()["greet"] == "hello"
    assert "GREETING" not in os.environ


def test_async_functions_and_closures_work(etl: Workflow) -> None:
    @etl.task
    async def one() -> int:
        return 1

    etl.task(name="two")(lambda one: one + 1)
    assert etl.run()["two"] == 2


def test_nothing_is_written_anywhere(etl: Workflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    @etl.task
    def one() -> str:
        return "x" * 100_000

    @etl.task
    def two(one: str) -> int:
        return len(one)

    assert etl.run()["two"] == 100_000
    assert list(tmp_path.iterdir()) == []


def test_a_notebook_shows_a_table_in_which_nothing_is_markup(etl: Workflow) -> None:
    @etl.task
    def evil() -> str:
        return "<script>alert('x')</script>"

    @etl.task(name="long")
    def long_one() -> str:
        return "y" * 1000

    shown = etl.run()._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert len(shown) < 2000
    assert shown.startswith("<table>")


def test_asking_for_an_unknown_task_names_the_known_ones(etl: Workflow) -> None:
    etl.command("a", ["true"])
    with pytest.raises(KeyError, match="it has a"):
        etl.run()["b"]
