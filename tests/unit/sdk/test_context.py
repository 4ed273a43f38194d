from __future__ import annotations

import pytest

import ork


def test_a_context_can_be_made_in_a_test_without_anything() -> None:
    context = ork.Context(task_name="load")
    assert (context.task_name, context.attempt, context.parallel_index) == ("load", 1, None)


def test_metrics_count_and_keep_the_last_value() -> None:
    metrics = ork.Context().metrics
    metrics.set("rows", 3)
    metrics["rows"] = 4
    metrics.incr("pages")
    metrics.incr("pages", 2.5)
    assert metrics.as_dict() == {"rows": 4, "pages": 3.5}
    assert (metrics["rows"], sorted(metrics), len(metrics)) == (4, ["pages", "rows"], 2)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "3", None])
def test_a_metric_is_a_finite_number(value: object) -> None:
    with pytest.raises(ValueError, match="finite number"):
        ork.Context().metrics.set("rows", value)  # type: ignore[arg-type]


def test_metrics_are_bounded() -> None:
    metrics = ork.Context().metrics
    for number in range(1000):
        metrics.incr(f"m{number}")
    metrics.incr("m1")
    with pytest.raises(ValueError, match="more than 1000"):
        metrics.incr("one too many")
    with pytest.raises(ValueError, match="name"):
        metrics.set("", 1)


def test_log_lines_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    log = ork.Context().log
    log.debug("a")
    log.info("rows %d of %s", 3, "x")
    log.warning("100%")
    try:
        raise KeyError("k")
    except KeyError:
        log.exception("failed")
    lines = capsys.readouterr().err.splitlines()
    assert lines[:4] == ["DEBUG a", "INFO rows 3 of x", "WARNING 100%", "ERROR failed"]
    assert lines[-1] == "KeyError: 'k'"


def test_fields_of_a_log_line_stand_behind_its_message(capsys: pytest.CaptureFixture[str]) -> None:
    ork.Context().log.info("loaded", rows=1, table="a b", kind="x", code="1", at=None, ids=[1, 2], message="m")
    expected = 'INFO loaded rows=1 table="a b" kind=x code="1" at=null ids=[1,2] message=m'
    assert capsys.readouterr().err == expected + "\n"


def test_a_task_error_is_tried_again_unless_it_says_not() -> None:
    assert ork.TaskError("busy").retry
    error = ork.TaskError("gone", retry=False)
    assert (str(error), error.message, error.retry) == ("gone", "gone", False)
