from __future__ import annotations

from ork.bench.measure import ResultTarget, Sample, TaskSeconds, Work, one_result, result_of
from ork.bench.report import gates, table


def test_the_table_has_a_line_for_each_result_and_explains_the_floors() -> None:
    task = TaskSeconds(0.001, 0.002, 0.004)
    chain = Work("chain", 40, "bare forks", (ResultTarget(1.7, at_most=True),))
    cold = Work("cold-help", 0, "bare python", (ResultTarget(5, at_most=True),))
    results = [
        result_of(chain, [Sample(0.8, 0.4, cpu_seconds=0.5, rss_mb=30, statements=700, tasks=(task,))]),
        result_of(cold, [Sample(0.06, 0.02), Sample(0.04, 0.02), Sample(0.08, 0.02)]),
    ]
    heading, first, second, blank, *notes = table(results)
    assert heading.split()[:2] == ["scenario", "tasks"]
    assert first.split() == [
        *["chain", "40", "800.0", "ms", "50", "3.0/3.0/3.0", "0.50", "30", "700", "400.0", "ms"],
        *["2.00", "≤", "1.7", "✗", "missed"],
    ]
    assert second.endswith("3.00 (2.00–4.00)  ≤ 5 ✓ met")
    assert blank == ""
    assert notes == ["  chain: floor is bare forks", "  cold-help: floor is bare python"]


def test_every_figure_has_its_gate_beside_it() -> None:
    nothing = {"what": "nothing"}
    targets = (ResultTarget(60, at_most=True, field="heap_mb"), ResultTarget(1500, at_most=True, field="nodes"))
    results = [
        one_result("ui-table", nothing, targets, size=100_000, heap_mb=31.26, nodes=2000),
        one_result(
            "ui-beside", nothing, (ResultTarget(50, at_most=True, field="added_ms"),), added_ms=4, note="at /runs"
        ),
    ]
    heading, *lines, blank, last = gates(results)
    assert heading.split() == ["scenario", "size", "figure", "gate", "verdict"]
    assert [line.split() for line in lines] == [
        ["ui-table", "100,000", "31.26", "≤", "60", "MB", "heap", "✓", "met"],
        ["2,000", "≤", "1,500", "nodes", "✗", "missed"],
        ["ui-beside", "–", "4", "≤", "50", "ms", "more", "✓", "met", "at", "/runs"],
    ]
    assert (blank, last) == ("", "1 of 3 gates were missed.")
