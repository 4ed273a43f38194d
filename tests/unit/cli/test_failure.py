from __future__ import annotations

from typing import Any

import pytest

from ork.cli.failure import explanation, headline
from ork.cli.paint import plain
from ork.model.task import Failure, FailureKind
from tests.unit.status.sample_runs import DIVISION


def shown(failure: Failure, **options: Any) -> list[str]:
    return [plain(spans) for spans in explanation(failure, **options)]


def exception(frames: list[Any], inputs: Any = None) -> Failure:
    return Failure(FailureKind.EXCEPTION, "E: x", {"frames": frames, "inputs": inputs})


def frame(line: int, source: str = "x = 1", caret: Any = None) -> dict[str, Any]:
    return {"file": "tasks.py", "line": line, "function": "f", "source": source, "caret": caret}


def test_an_exception_shows_the_users_frame_with_a_caret_and_the_inputs() -> None:
    assert shown(DIVISION) == [
        "      tasks.py:8 in transform",
        '        8 |     return {"active": total / row["qty"]}',
        "          |                       ~~~~~~^~~~~~~~~~~~",
        "      inputs  rows=12",
    ]


def test_frames_on_the_way_get_one_line_each() -> None:
    assert shown(exception([frame(1), frame(2)])) == [
        "      tasks.py:1 in f",
        "      tasks.py:2 in f",
        "        2 | x = 1",
    ]


def test_a_long_way_is_told_in_two_lines() -> None:
    lines = shown(exception([frame(number) for number in range(1, 8)]))
    assert lines == ["      tasks.py:1 in f", "      … 5 more calls", "      tasks.py:7 in f", "        7 | x = 1"]


def test_full_shows_every_frame_with_its_source() -> None:
    assert len(shown(exception([frame(number) for number in range(1, 8)]), full=True)) == 14


def test_an_expression_without_operator_is_marked_as_a_whole() -> None:
    assert shown(exception([frame(3, "call(1)", [0, 7])]))[-1] == "          | ^^^^^^^"


def test_a_subscript_is_marked_at_its_bracket() -> None:
    assert shown(exception([frame(3, 'row["qty"]', [0, 10])]))[-1] == "          | ~~~^^^^^^^"


def test_a_caret_below_a_tab_stays_below_its_text() -> None:
    lines = shown(exception([frame(3, "\tcall(1)", [1, 8])]))
    assert lines[-2:] == ["        3 |     call(1)", "          |     ^^^^^^^"]


def test_a_command_shows_its_last_lines() -> None:
    failure = Failure(FailureKind.EXIT, "exit code 3", {"tail": ["one", "", "two"]})
    assert shown(failure) == ["      | one", "      | two"]


def test_only_the_last_few_lines_of_a_command_are_shown() -> None:
    failure = Failure(FailureKind.EXIT, "exit code 3", {"tail": [str(number) for number in range(10)]})
    assert shown(failure) == ["      | 6", "      | 7", "      | 8", "      | 9"]


def test_hostile_text_is_made_visible_and_bounded() -> None:
    failure = Failure(
        FailureKind.EXCEPTION, "\x1b[2J" + "x" * 1000 + "\nsecond", {"frames": [], "inputs": {"a": "\r" * 500}}
    )
    assert headline(failure).startswith("␛[2J")
    assert len(headline(failure)) == 160
    assert "\r" not in shown(failure)[0]
    assert len(shown(failure)[0]) < 200


def test_a_detail_of_the_wrong_shape_is_left_out() -> None:
    assert shown(Failure(FailureKind.EXCEPTION, "x", {"frames": "no", "inputs": 3, "tail": {"a": 1}})) == []
    assert shown(exception([{"file": None}, 7, frame(1, caret=["a", 2])])) != []
    assert headline(None) == "failed"


def test_what_caused_an_exception_is_told_in_one_line_each() -> None:
    failure = exception([frame(9)], {"n": "1"})
    assert failure.detail is not None
    causes = [{"type": "KeyError", "message": f"'{name}'\nmore", "frames": [frame(4)]} for name in "xyzw"]
    failure.detail["causes"] = [*causes[:2], {"type": "Odd", "message": "", "frames": []}, "no cause", causes[3]]
    assert shown(failure)[2:] == [
        "      caused by KeyError: 'x' (tasks.py:4)",
        "      caused by KeyError: 'y' (tasks.py:4)",
        "      caused by Odd",
        "      inputs  n=1",
    ]


def test_a_cause_that_goes_on_for_ever_keeps_its_place() -> None:
    failure = exception([])
    assert failure.detail is not None
    failure.detail["causes"] = [{"type": "E", "message": "x" * 1000, "frames": [frame(4)]}]
    (text,) = shown(failure)
    assert text.endswith("… (tasks.py:4)")
    assert len(text) < 200


def test_of_a_huge_last_line_the_end_is_shown() -> None:
    (text,) = shown(Failure(FailureKind.EXIT, "exit code 3", {"tail": ["x" * 1000 + " the reason"]}))
    assert text.startswith("      | …x")
    assert text.endswith(" the reason")
    assert len(text) < 200


@pytest.mark.parametrize("count", range(5))
def test_a_failure_takes_seven_lines_however_long_its_way_and_however_many_its_causes(count: int) -> None:
    failure = exception([frame(number, "call(1)", [0, 7]) for number in range(1, 9)], {"n": "1"})
    assert failure.detail is not None
    failure.detail["causes"] = [{"type": "E", "message": "x", "frames": [frame(4)]}] * count
    lines = shown(failure)
    assert len(lines) <= 7
    assert lines.count("      caused by E: x (tasks.py:4)") == min(count, 3)
    assert "      tasks.py:8 in f" in lines
