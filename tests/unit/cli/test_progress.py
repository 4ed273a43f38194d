from __future__ import annotations

import io
import json

from ork.cli.paint import Palette
from ork.cli.progress import JsonProgress, LiveProgress, PlainProgress
from ork.model.record import replaced
from ork.model.run import RunStatus
from ork.model.task import Failure, FailureKind
from ork.state.records import RunUpdate
from tests.unit.status.sample_runs import at, done, running, spec, view_of, waiting

PALETTE = Palette(False, 80)


def test_plain_progress_writes_one_line_per_end() -> None:
    out = io.StringIO()
    view = view_of([spec("a"), spec("b", "a")], [done("a"), waiting("b")])
    progress = PlainProgress(out, PALETTE)
    progress.show(view, [done("a")], at(1), None)
    progress.show(view, [], at(2), None)
    progress.show(view, [done("b")], at(3), None)
    assert out.getvalue() == "hello · run 7f3k · 2 tasks\n  ✓ a            0.2s\n  ✓ b            0.2s\n"


def test_plain_progress_announces_a_task_only_when_it_takes_a_while() -> None:
    out = io.StringIO()
    progress = PlainProgress(out, PALETTE)
    view = view_of([spec("a")], [running("a")])
    assert progress.show(view, list(view.tasks.values()), at(0.5), None) == 1.5
    assert "started" not in out.getvalue()
    assert progress.show(view, [], at(2), None) is None
    progress.show(view, [], at(3), None)
    assert out.getvalue().count("▶ a            started") == 1


def test_a_retry_is_told_once() -> None:
    out = io.StringIO()
    task = waiting("a", attempt=1, retry_at=at(5), failure=Failure(FailureKind.EXIT, "exit code 3"))
    view = view_of([spec("a", retries=1)], [task])
    progress = PlainProgress(out, PALETTE)
    progress.show(view, [task], at(1), None)
    progress.show(view, [task], at(2), None)
    assert out.getvalue().count("attempt 1 of 2, retry in") == 1


def test_the_same_end_in_a_later_round_is_told_again() -> None:
    out = io.StringIO()
    first = done("a")
    view = view_of([spec("a")], [first])
    progress = PlainProgress(out, PALETTE)
    progress.show(view, [first], at(1), None)
    view.apply(RunUpdate(view.run, (replaced(first, attempt=2),), 2))
    progress.show(view, [replaced(first, attempt=2)], at(2), None)
    assert out.getvalue().count("✓ a") == 2


def test_json_progress_writes_one_object_per_change() -> None:
    out = io.StringIO()
    view = view_of([spec("a")], [running("a")])
    JsonProgress(out).show(view, [running("a"), done("a")], at(1), None)
    events = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(event["task"], event["status"]) for event in events] == [("a", "running"), ("a", "success")]
    assert events[0]["at"] == "2026-01-01T12:00:01.000000Z"


def test_the_live_view_leaves_only_lasting_lines_behind() -> None:
    out = io.StringIO()
    progress = LiveProgress(out, PALETTE)
    view = view_of([spec("a")], [running("a")])
    with progress.screen():
        progress.show(view, [running("a")], at(1), None)
        progress.note("cancelling")
        view.apply(RunUpdate(replaced(view.run, status=RunStatus.SUCCESS), (done("a"),), 2))
        progress.show(view, [done("a")], at(2), None)
    last_frame = out.getvalue().rpartition("\x1b[J")[2]
    assert last_frame == "  ✓ a            0.2s\ncancelling\n\x1b[?25h"
