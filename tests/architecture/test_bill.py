"""The tables of costs in the documentation are what their arithmetic says, from dated prices."""

from __future__ import annotations

import pytest
from perf import aws, bill, others


@pytest.mark.parametrize("page", ["gcp.md", "aws.md", "comparison.md"])
def test_the_tables_are_those_that_the_script_makes(page: str) -> None:
    text = (bill.DOCS / page).read_text()
    assert bill.with_tables(text, bill.tables()[page]) == text, "python -m perf.bill --write"


def test_more_runs_cost_more_and_idle_costs_almost_nothing() -> None:
    prices = bill.shipped_prices()
    months = [sum(bill.cost(prices, bill.used_by_ork(runs)).values()) for runs in bill.RUNS_A_DAY]
    assert months == sorted(months)
    assert months[0] < 1
    assert sum(bill.after_free(prices, bill.used_by_ork(0)).values()) < 0.01


def test_a_wide_fan_out_costs_what_the_page_says() -> None:
    prices = bill.shipped_prices()
    operations = {name: number * 100 for name, number in bill.FAN_OUT_100.counts.items() if name != "ticks"}
    assert (
        f"about ${sum(bill.cost(prices, operations).values()):.2f} in operations"
        in (bill.DOCS / "comparison.md").read_text()
    )


def test_everything_that_is_used_has_a_price_and_stands_in_the_table() -> None:
    used = {*bill.used_by_ork(100), *bill.used_by_tasks(bill.shipped_prices(), 1)}
    assert used == {*bill.ITEMS, *bill.TASK_ITEMS}
    assert used <= set(bill.shipped_prices().items)


@pytest.mark.parametrize(
    ("text", "free"),
    [("50,000 a day", 1_500_000), ("1 GiB", 1), ("5,000 a month in three regions of the USA", 0), (None, 0)],
)
def test_free_quotas_are_read_from_the_price_file(text: str | None, free: float) -> None:
    assert bill.free_in_a_month(text) == free


def test_every_price_of_others_has_a_source_and_a_date() -> None:
    for source in [*others.SOURCES.values(), *aws.SOURCES.values()]:
        assert source.where
        assert source.date[-10:-6].isdigit()
        assert source.how in ("page", "quoted", "memory")
    assert (others.RUNS, others.ATTEMPTS) == (85, 250)
