from __future__ import annotations

from itertools import chain

from ork.cli.paint import plain
from ork.cli.task_lines import any_lines, ended_lines, header, next_steps, retry_lines, summary
from ork.model.ids import TaskKey
from ork.model.record import replaced
from ork.model.run import RunStatus
from ork.model.task import Failure, FailureKind, StoredOutput, TaskStatus
from ork.status.run_view import RunView
from tests.unit.status.sample_runs import DIVISION, at, done, failed, running, skipped, spec, view_of, waiting

SPECS = [spec("extract"), spec("transform", "extract"), spec("load", "transform")]


def everything(view: RunView) -> str:
    """What `ork run` leaves on the screen."""
    ended = chain.from_iterable(ended_lines(view, task) for task in view.tasks.values())
    lines = [header(view), *ended, (), summary(view), *next_steps(view)]
    return "\n".join(plain(spans) for spans in lines) + "\n"


def test_a_run_that_succeeds_looks_like_this() -> None:
    tasks = [
        done("extract", output='{"rows":12}'),
        done("transform", 0.1, '{"active":9}'),
        done("load", 0.1, '{"path":"out/active.json"}'),
    ]
    assert (
        everything(view_of(SPECS, tasks, status=RunStatus.SUCCESS))
        == """\
hello · run 7f3k · 3 tasks
  ✓ extract      0.2s   {"rows": 12}
  ✓ transform    0.1s   {"active": 9}
  ✓ load         0.1s   {"path": "out/active.json"}

✓ success in 0.5s · 3 succeeded
  ork logs 7f3k   ork show 7f3k
"""
    )


def test_a_run_that_fails_says_why_in_at_most_fifteen_lines() -> None:
    tasks = [done("extract"), failed("transform", DIVISION), skipped("load", "transform")]
    text = everything(view_of(SPECS, tasks, status=RunStatus.FAILED))
    assert (
        text
        == """\
hello · run 7f3k · 3 tasks
  ✓ extract      0.2s
  ✗ transform    0.1s   ZeroDivisionError: division by zero   attempt 1 of 1
      tasks.py:8 in transform
        8 |     return {"active": total / row["qty"]}
          |                       ~~~~~~^~~~~~~~~~~~
      inputs  rows=12
  ⊘ load         skipped: transform failed

✗ failed in 0.5s · 1 succeeded, 1 failed, 1 skipped
  full log       ork logs 7f3k transform
  fix, continue  ork retry 7f3k
  debug          ork debug 7f3k transform
"""
    )
    assert len(text.splitlines()) <= 15


def test_a_deep_failure_still_fits_into_fifteen_lines() -> None:
    assert DIVISION.detail is not None
    deep = replaced(DIVISION, detail={**DIVISION.detail, "frames": DIVISION.detail["frames"] * 30})
    tasks = [done("extract"), failed("transform", deep), skipped("load", "transform")]
    assert len(everything(view_of(SPECS, tasks, status=RunStatus.FAILED)).splitlines()) <= 15


def test_a_try_that_is_repeated_says_when_and_why() -> None:
    task = waiting("load", attempt=2, retry_at=at(40), failure=Failure(FailureKind.EXCEPTION, "HTTPError: 503"))
    view = view_of([spec("load", retries=2)], [task])
    assert (
        plain(retry_lines(view, task, at(0))[0]) == "  ✗ load         attempt 2 of 3, retry in 40.0s   HTTPError: 503"
    )


def test_tries_are_counted_anew_after_a_retry_by_a_person() -> None:
    task = replaced(failed("load", DIVISION, attempt=4), earlier_attempts=3)
    assert "attempt 1 of 3" in plain(ended_lines(view_of([spec("load", retries=2)], [task]), task)[0])


def test_tasks_that_have_not_ended_are_shown_too() -> None:
    tasks = [running("extract", 1.0), replaced(waiting("transform"), status=TaskStatus.DISPATCHED), waiting("load")]
    view = view_of(SPECS, tasks)
    lines = [plain(spans) for task in tasks for spans in any_lines(view, task, at(3))]
    assert lines == ["  ▶ extract      2.0s", "  ▷ transform    starting", "  ◷ load         waiting"]
    assert plain(summary(view)) == "▶ running · 1 running, 1 starting, 1 waiting"


def test_one_instance_is_counted_as_one() -> None:
    group, one = replaced(done("load"), instances=1), replaced(done("load"), key=TaskKey("load", 0))
    view = view_of([spec("load")], [group, one], status=RunStatus.SUCCESS)
    assert plain(summary(view)) == "✓ success in 0.5s · 1 instance succeeded"


def test_a_large_output_is_told_by_its_size() -> None:
    task = replaced(done("load"), output=StoredOutput("key", 2048 * 1024))
    assert plain(ended_lines(view_of(SPECS, [task]), task)[0]) == "  ✓ load         0.2s   2,048 KiB of output"


def test_hostile_outputs_and_reasons_do_not_reach_the_terminal() -> None:
    task = done("load", output='"\\u001b[2J"')
    assert "\x1b" not in plain(ended_lines(view_of(SPECS, [task]), task)[0])
    gone = replaced(skipped("load", "x"), reason="a\x1bb")
    assert "\x1b" not in plain(ended_lines(view_of(SPECS, [gone]), gone)[0])
