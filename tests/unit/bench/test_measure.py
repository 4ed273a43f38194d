from __future__ import annotations

import pytest

from ork.bench.measure import ResultTarget, Sample, TaskSeconds, Work, latencies, percentile, result_of
from ork.bench.sampling import interleaved

CHAIN = Work("chain", 10, "a floor", (ResultTarget(1.7, at_most=True),))
FANOUT = Work("fanout", 100, "a floor", (ResultTarget(0.75),), rate=True)


def test_times_are_judged_by_time_over_floor() -> None:
    result = result_of(CHAIN, [Sample(seconds=3.0, floor_seconds=2.0)])
    assert (result["ratio"], result["target_met"]) == (1.5, True)


def test_rates_are_judged_by_rate_over_floor() -> None:
    result = result_of(FANOUT, [Sample(seconds=4.0, floor_seconds=2.0)])
    assert (result["ratio"], result["tasks_per_second"], result["target_met"]) == (0.5, 25.0, False)


def test_a_moment_in_which_the_whole_machine_was_slow_does_not_change_the_ratio() -> None:
    samples = [Sample(3.0, 2.0), Sample(30.0, 20.0), Sample(3.0, 2.0)]
    result = result_of(CHAIN, samples)
    assert (result["ratio"], result["ratio_range"], result["seconds"]) == (1.5, [1.5, 1.5], 3.0)


def test_a_target_may_be_set_for_the_rate_itself() -> None:
    target = ResultTarget(10_000, field="tasks_per_second")
    work = Work("engine", 1000, "a floor", (target,), rate=True)
    assert result_of(work, [Sample(0.05, 0.01)])["target_met"] is True
    assert result_of(work, [Sample(0.5, 0.01)])["target_met"] is False
    assert str(target) == "≥ 10,000/s"


def test_latencies_are_those_of_the_stages_of_each_task() -> None:
    tasks = tuple(TaskSeconds(dispatched=0.5, started=0.6, finished=0.6 + n / 1000) for n in range(1, 101))
    result = result_of(CHAIN, [Sample(1.0, 1.0, tasks=tasks)])
    assert result["stages_ms"]["created_dispatched"]["p50"] == 500
    assert result["stages_ms"]["dispatched_started"]["p99"] == pytest.approx(100)
    assert result["stages_ms"]["started_finished"] == {"p50": 50.0, "p95": 95.0, "p99": 99.0}
    assert result["latency_ms"]["p50"] == 150


def test_what_was_not_seen_is_null() -> None:
    result = result_of(CHAIN, [Sample(1.0, 1.0)])
    assert result["latency_ms"] == {"p50": None, "p95": None, "p99": None}
    assert (result["stages_ms"], result["statements"], result["rss_mb"]) == (None, None, None)


@pytest.mark.parametrize(("share", "value"), [(50, 2), (95, 4), (99, 4), (1, 1), (100, 4)])
def test_a_percentile_is_one_of_the_values(share: int, value: int) -> None:
    assert percentile([1, 2, 3, 4], share) == value


def test_one_value_is_every_percentile() -> None:
    assert latencies([0.002]) == {"p50": 2.0, "p95": 2.0, "p99": 2.0}


def test_a_percentile_can_be_a_target_and_all_targets_count() -> None:
    targets = tuple(
        ResultTarget(limit, at_most=True, field="latency_ms", part=part) for limit, part in ((10, "p50"), (40, "p99"))
    )
    tasks = tuple(TaskSeconds(0.001, n / 1000, 1.0) for n in range(1, 51))
    work = Work("latency", 50, "a floor", targets, latency=lambda task: task.started)
    assert result_of(work, [Sample(0.02, 0.01, tasks=tasks[:20])])["target_met"] is True
    assert result_of(work, [Sample(0.02, 0.01, tasks=tasks)])["target_met"] is False
    assert result_of(work, [Sample(0.02, 0.01)])["target"] == "p50 ≤ 10 ms, p99 ≤ 40 ms"


def test_a_sample_lies_between_two_looks_at_its_floor() -> None:
    floors = iter([1.0, 3.0, 5.0])
    samples = interleaved(2, lambda: next(floors), lambda number: Sample(float(number), 0.0))
    assert [(one.seconds, one.floor_seconds) for one in samples] == [(0.0, 2.0), (1.0, 4.0)]
