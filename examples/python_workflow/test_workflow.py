"""Functions are tested as functions, the whole workflow with `run()`: no store, no processes, no waiting."""

from __future__ import annotations

from datetime import date

import workflow


def test_a_task_is_a_plain_function() -> None:
    assert workflow.totals([{"shop": "Brno", "cents": 5}, {"shop": "Brno", "cents": 7}]) == {"Brno": 12}


def test_the_whole_workflow() -> None:
    result = workflow.orders.run(day=date(2026, 3, 1))
    assert result.status == "success"
    assert result["totals"] == {"Brno": 208, "Prague": 212}
    assert result["receipt"] == ["Brno: 1.04", "Brno: 1.04", "Prague: 1.06", "Prague: 1.06"]
    assert result["report"] == "01.03.2026: 4 receipts, Prague sold most"


def test_a_workflow_that_runs_another() -> None:
    result = workflow.week.run(first="2026-03-02")
    assert [report.partition(":")[0] for report in result["each"]] == ["02.03.2026", "03.03.2026", "04.03.2026"]
