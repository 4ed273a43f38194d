from __future__ import annotations

from datetime import datetime

from ork.cli.live import MAX_LINES, render
from ork.cli.paint import columns, plain
from ork.model.record import replaced
from ork.model.run import RunStatus
from ork.model.task import Failure, FailureKind, TaskStatus
from ork.status.history import History
from ork.status.run_view import RunView
from tests.unit.status.sample_runs import at, done, running, spec, view_of, waiting

ERROR = Failure(FailureKind.EXCEPTION, "HTTPError: 503")


def lines_of(view: RunView, now: datetime, width: int = 120, history: History | None = None) -> list[str]:
    return [plain(spans) for spans in render(view, now, width, history)]


def test_retries_come_first_then_what_runs_then_what_waits_then_the_bar() -> None:
    specs = [spec("extract"), spec("load", retries=2), spec("clean"), spec("report", "clean")]
    tasks = [
        done("extract", 12.1),
        waiting("load", attempt=2, retry_at=at(82), failure=ERROR),
        running("clean", 1.0),
        waiting("report"),
    ]
    assert lines_of(view_of(specs, tasks), at(42)) == [
        "  ✗ load         attempt 2 of 3, retry in 40.0s   HTTPError: 503",
        "  ▶ clean        41.0s",
        "  ◷ report       waiting for clean",
        "  ███████░░░░░░░░░░░░░░░░░░░░░  1 of 4 · 42.0s",
    ]


def test_many_tasks_are_folded_into_at_most_fourteen_lines() -> None:
    specs = [spec(f"t{number}", retries=1) for number in range(300)]
    tasks = [running(f"t{number}", number / 1000) for number in range(100)]
    tasks += [waiting(f"t{number}") for number in range(100, 280)]
    tasks += [waiting(f"t{number}", attempt=1, retry_at=at(60), failure=ERROR) for number in range(280, 300)]
    lines = lines_of(view_of(specs, tasks), at(10))
    assert len(lines) == MAX_LINES
    assert lines[3] == "  ◷ … 17 more to be retried"
    assert lines[-3] == "  ▶ … 93 more running"
    assert lines[-2:] == ["  ◷ 180 waiting", "  ░░░░░░░░░░░░░░░░░░░░░░░░░░░░  0 of 300 · 10.0s"]


def test_the_longest_running_task_is_on_top() -> None:
    view = view_of([spec("young"), spec("old")], [running("young", 5), running("old", 1)])
    assert [line.split()[1] for line in lines_of(view, at(10))[:2]] == ["old", "young"]


def test_time_left_and_slowness_come_from_earlier_runs() -> None:
    history = History([300.0] * 20, {"load": [float(number) for number in range(20)] + [100.0]})
    lines = lines_of(view_of([spec("load")], [running("load")]), at(50), history=history)
    assert lines[0] == "  ▶ load         50.0s   slower than 20 of the last 21"
    assert lines[-1].endswith("0 of 1 · 50.0s · about 4m left")


def test_a_paused_run_says_so() -> None:
    lines = lines_of(view_of([spec("load")], [waiting("load")], status=RunStatus.PAUSED), at(1))
    assert lines[0] == "  ‖ paused: 1 waiting"


def test_a_run_nobody_has_begun_says_so() -> None:
    view = view_of([spec("load")], [], status=RunStatus.PENDING, started_at=None)
    assert lines_of(view, at(1))[-1].endswith("waiting to be started")


def test_no_line_is_wider_than_the_terminal() -> None:
    error = Failure(FailureKind.EXCEPTION, "日本語" * 60)
    tasks = [waiting("load", attempt=1, retry_at=at(5), failure=error), running("x" * 100)]
    specs = [spec("load", retries=1), spec("x" * 100)]
    for width in (30, 60, 80):
        assert all(columns(line) < width for line in lines_of(view_of(specs, tasks), at(1), width))


def test_a_dispatched_task_is_starting() -> None:
    task = replaced(waiting("load"), status=TaskStatus.DISPATCHED, attempt=1)
    assert lines_of(view_of([spec("load")], [task]), at(1))[0] == "  ▷ load         starting"


def test_forty_columns_keep_the_numbers() -> None:
    long = "a_task_with_a_name_of_nearly_forty_chars"
    view = view_of([spec(long), spec("b")], [running(long, 1.0), done("b")])
    lines = lines_of(view, at(42), width=40)
    assert all(columns(text) < 40 for text in lines)
    assert lines[0].endswith("41.0s")
    assert lines[-1].endswith("1 of 2 · 42.0s")
