# A workflow in Python: dependencies follow from parameter names, and functions stay plain functions.
#
#   ork run workflow.py orders -p day=2026-03-01
#   ork run workflow.py week
#   pytest test_workflow.py
from __future__ import annotations

from datetime import date, timedelta
from typing import TypedDict

from ork import Workflow, ref

orders = Workflow("orders", schedule="0 2 * * *", description="What was sold on a day, by shop")


class Sale(TypedDict):
    shop: str
    cents: int


@orders.task(retries=2, timeout="1m")
def sales(day: date, shops: list[str] | None = None) -> list[Sale]:
    """`day` and `shops` are no tasks: they are params of the workflow, typed by their annotations."""
    names = shops or ["Brno", "Prague"]
    return [{"shop": shop, "cents": 100 * day.day + len(shop)} for shop in names for _ in range(2)]


@orders.task
def totals(sales: list[Sale]) -> dict[str, int]:
    """Gets the output of the task `sales`, and so runs after it."""
    found: dict[str, int] = {}
    for sale in sales:
        found[sale["shop"]] = found.get(sale["shop"], 0) + sale["cents"]
    return found


@orders.task(foreach=sales, concurrency=2)
def receipt(item: Sale) -> str:
    """One instance for each sale."""
    return f"{item['shop']}: {item['cents'] / 100:.2f}"


@orders.task
def report(day: date, totals: dict[str, int], receipt: list[str]) -> str:
    best = max(totals, key=lambda shop: totals[shop])
    return f"{day:%d.%m.%Y}: {len(receipt)} receipts, {best} sold most"


week = Workflow("week", description="The report of each day of a week: a workflow that runs another")


@week.task
def days(first: date = date(2026, 3, 2)) -> list[date]:
    return [first + timedelta(days=number) for number in range(3)]


week.workflow("each", orders, foreach=days, inputs={"day": ref("item")})
week.command("tell", ["echo", ref("tasks.each.output[0]")])
