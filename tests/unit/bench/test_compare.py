from __future__ import annotations

from typing import Any

from ork.bench.compare import differences
from ork.bench.measure import Sample, Work, one_result, result_of
from ork.bench.report import comparison


def chain(*seconds: float, statements: int = 100, scenario: str = "chain", rate: bool = False) -> dict[str, Any]:
    work = Work(scenario, 10, "a floor", rate=rate)
    return result_of(work, [Sample(one, 1.0, statements=statements) for one in seconds])


def worse(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [change.field for change in differences([before], [after]) if change.is_worse]


def test_a_ratio_beyond_the_margin_and_beyond_all_earlier_repeats_is_worse() -> None:
    assert worse(chain(2.0, 2.1, 2.2), chain(3.0, 3.1, 3.2)) == ["ratio"]
    assert worse(chain(2.0, 2.1, 2.2), chain(2.3, 2.4, 2.5)) == []


def test_a_noisy_machine_is_no_regression() -> None:
    assert worse(chain(2.0, 2.1, 3.5), chain(3.0, 3.1, 3.2)) == []


def test_a_rate_is_worse_when_it_is_lower() -> None:
    assert worse(chain(1.0, rate=True), chain(2.0, rate=True)) == ["ratio"]
    assert worse(chain(2.0, rate=True), chain(1.0, rate=True)) == []


def test_more_statements_are_a_regression_however_quick_they_were() -> None:
    assert worse(chain(2.0), chain(2.0, statements=120)) == ["statements"]


def test_memory_is_compared_where_there_is_no_ratio() -> None:
    before, after = (one_result("memory-task", {"what": "nothing"}, (), tasks=10, kb_each=kb) for kb in (0.5, 0.9))
    assert worse(before, after) == ["kb_each"]


def test_only_equal_work_is_compared() -> None:
    assert differences([chain(1.0)], [chain(9.0, scenario="fanout")]) == []
    assert differences([chain(1.0) | {"size": 10}], [chain(9.0) | {"size": 100}]) == []


def test_ratios_to_different_floors_are_not_compared() -> None:
    lower = chain(1.0) | {"floor": {"what": "another floor", "seconds": 1.0}}
    assert [change.field for change in differences([lower], [chain(9.0)])] == ["statements"]


def test_what_became_worse_is_named() -> None:
    lines = comparison(differences([chain(2.0)], [chain(4.0)]))
    assert lines[-1] == "worse: chain: its ratio to the floor was 2, is 4"
    assert comparison(differences([chain(2.0)], [chain(2.0)]))[-1] == "Nothing became worse."
    assert comparison([]) == ["Nothing of this was measured in the earlier result."]
