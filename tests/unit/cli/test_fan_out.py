"""However many instances a task has, a person sees a few lines of them, and a change costs no look at the others."""

from __future__ import annotations

import io

from ork.cli.commands.runs import show_lines
from ork.cli.live import MAX_LINES, render
from ork.cli.paint import Palette, plain
from ork.cli.progress import PlainProgress
from ork.cli.task_lines import MAX_INSTANCES
from ork.model.ids import TaskKey
from ork.model.record import replaced
from ork.model.run import RunStatus
from ork.model.task import Failure, FailureKind, Task, TaskStatus
from ork.model.workflow import Approval, TaskSpec
from ork.state.records import RunUpdate
from ork.status.run_view import RunView
from tests.unit.status.sample_runs import at, done, failed, running, spec, view_of, waiting

ERROR = Failure(FailureKind.EXIT, "exit code 1")
MANY = 10_000


def instance(task: Task, index: int) -> Task:
    return replaced(task, key=TaskKey(task.key.name, index))


def many(*rows: Task, total: int = MANY, **fields: object) -> RunView:
    """`load` with as many instances as nobody could look at; those given, the rest waits."""
    given = {row.key.index for row in rows}
    rest = [instance(waiting("load"), index) for index in range(total) if index not in given]
    specs = [spec("load", parallel=total, concurrency=48, retries=2), spec("report", "load")]
    return view_of(specs, [running("load", instances=total), *rows, *rest, waiting("report")], **fields)


def lines_of(view: RunView, now: float = 10) -> list[str]:
    return [plain(spans) for spans in render(view, at(now), 120)]


def test_the_live_view_folds_a_fan_out_into_one_line_with_a_bar() -> None:
    rows = [instance(done("load"), index) for index in range(2500)]
    rows += [instance(running("load"), index) for index in range(2500, 2548)]
    assert lines_of(many(*rows)) == [
        "  ▶ load         10.0s   ████░░░░░░░░░░░░  2,500 of 10,000, 48 running, 7,452 queued: concurrency 48",
        "  ◷ report       waiting for load",
        "  ██████░░░░░░░░░░░░░░░░░░░░░░  2,500 of 10,001 · 10.0s",
    ]


def test_instances_to_be_retried_are_shown_and_bounded() -> None:
    rows = [instance(waiting("load", attempt=1, retry_at=at(50), failure=ERROR), index) for index in range(900)]
    lines = lines_of(many(*rows))
    assert len(lines) <= MAX_LINES
    assert lines[0] == "  ✗ load[0]      attempt 1 of 3, retry in 40.0s   exit code 1"
    assert lines[3] == "  ◷ … 897 more to be retried"


def test_show_folds_and_names_the_first_failed_instances() -> None:
    rows = [instance(failed("load", ERROR), index) for index in range(7)]
    view = many(*rows, *(instance(done("load"), index) for index in range(7, 20)), total=20, status=RunStatus.FAILED)
    view.apply(RunUpdate(view.run, (replaced(failed("load", ERROR), attempt=0, instances=20),), 2))
    text = [plain(spans) for spans in show_lines(view, at(10))]
    assert text[2] == "  ✗ load         0.1s    ████████████████  20 of 20, 7 failed"
    assert [line.split()[1] for line in text[3 : 3 + MAX_INSTANCES]] == [f"load[{index}]" for index in range(5)]
    assert text[3 + MAX_INSTANCES] == "      … 2 more instances of load failed"
    assert "  debug          ork debug 7f3k 'load[0]'" in text


def test_show_unfolds_on_demand() -> None:
    view = many(*(instance(done("load"), index) for index in range(20)), total=20)
    folded, unfolded = (len(show_lines(view, at(10), unfolded=choice)) for choice in (False, True))
    assert unfolded - folded == 20


def test_plain_progress_tells_the_end_of_a_fan_out_once_and_a_few_of_its_failures() -> None:
    out = io.StringIO()
    rows = [instance(failed("load", ERROR) if index % 2 else done("load"), index) for index in range(100)]
    view = many(*rows, total=100)
    progress = PlainProgress(out, Palette(False, 120))
    progress.show(view, rows, at(1), None)
    group = replaced(failed("load", ERROR), attempt=0, instances=100)
    view.apply(RunUpdate(view.run, (group,), 2))
    progress.show(view, [group], at(2), None)
    lines = out.getvalue().splitlines()
    assert [line.split()[1] for line in lines[1:-1]] == [f"load[{index}]" for index in (1, 3, 5, 7, 9)]
    assert lines[-1] == "  ✗ load         0.1s    ████████████████  100 of 100, 50 failed"


def test_one_more_finished_instance_touches_only_its_own_rows() -> None:
    view = many()
    touched: list[TaskKey] = []

    class Counting(dict[TaskKey, Task]):
        def __setitem__(self, key: TaskKey, task: Task) -> None:
            touched.append(key)
            super().__setitem__(key, task)

    view.tasks = Counting(view.tasks)
    assert view.apply(RunUpdate(view.run, (instance(done("load"), 3),), 2)) == [instance(done("load"), 3)]
    assert touched == [TaskKey("load", 3)]


def test_a_question_is_shown_with_the_command_that_answers_it() -> None:
    view = view_of([TaskSpec("release", "approval", Approval("Publish\n it?"))], [running("release")])
    assert lines_of(view)[0] == "  ‖ release      10.0s   Publish it?   ork approve 7f3k release"
    out = io.StringIO()
    PlainProgress(out, Palette(False, 120)).show(view, [], at(3), None)
    assert "Publish it?   ork approve 7f3k release" in out.getvalue()


def test_a_reason_of_a_success_is_shown() -> None:
    task = replaced(done("load", output="1"), reason="cached: the same as in run abc")
    text = [plain(spans) for spans in show_lines(view_of([spec("load")], [task], status=RunStatus.SUCCESS), at(1))]
    assert text[2] == "  ✓ load         0.2s   1   cached: the same as in run abc"
    assert task.status is TaskStatus.SUCCESS
