"""What an installation on Google Cloud or AWS costs in a month, and what one day costs on other services: counted operations × dated prices.

    python -m perf.bill            print the tables
    python -m perf.bill --write    put them into docs/gcp.md, docs/aws.md and docs/comparison.md, where a test compares them

Operations of runs are counted by tests/cloud/test_bill_counts.py, which fails when a run costs more. Prices on Google Cloud are those of
`ork cost` (src/ork/definition/prices.yaml), those of others are in perf/others.py; both are dated and name their sources.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ork.definition.prices_file import shipped_prices
from ork.model.prices import Prices

DAYS = 30
RUNS_A_DAY = (0, 100, 10_000)
DOCS = Path(__file__).resolve().parents[1] / "docs"


class Operations(NamedTuple):
    """What something costs in operations, by their names in the price file. `ticks` are requests of the queue to the service."""

    counts: Mapping[str, int]


# Counted in November 2026, the fan-out on a busy machine, and rounded up a little. Of a run that somebody starts: a schedule fires inside the first tick.
THREE_TASKS = Operations(
    {"firestore.read": 60, "firestore.write": 38, "firestore.delete": 8, "gcs.class_a": 12, "gcs.class_b": 36, "cloudtasks.operation": 32, "ticks": 4}
)  # fmt: skip
# What one more tick costs: on a slow machine a tick may come before the task that it was called for has ended.
ANOTHER_TICK = Operations(
    {"firestore.read": 14, "firestore.write": 8, "firestore.delete": 2, "gcs.class_a": 2, "gcs.class_b": 10, "cloudtasks.operation": 7, "ticks": 1}
)  # fmt: skip
FAN_OUT_100 = Operations(
    {"firestore.read": 310, "firestore.write": 55, "firestore.delete": 12, "gcs.class_a": 320, "gcs.class_b": 1600, "cloudtasks.operation": 95, "ticks": 20}
)  # fmt: skip
IDLE_TICK = Operations({"firestore.read": 8, "gcs.class_b": 1, "cloudtasks.operation": 5, "ticks": 1})

# Assumed, not counted: they depend on the platform. All are meant to be too high rather than too low.
SAFETY_TICKS = 96  # a day
TICK_SECONDS = 1.0  # of the service: one processor and 512 MiB
WAKE_SECONDS = 0.2
COLD_START_SECONDS = 5.0
MOST_COLD_STARTS = 192  # a day: an instance stays for about 15 minutes
SERVICE_GIB = 0.5
TASKS_OF_A_RUN = 3
TASK_SECONDS, TASK_VCPUS, TASK_GIB = 10.0, 1, 0.5
KEPT_DAYS, STATE_KIB, DOCUMENT_KIB = 90, 10, 20  # of each run
IMAGE_GIB = 0.5

ITEMS = {
    "cloudrun.service_vcpu_second": "service, vCPU-seconds",
    "cloudrun.service_gib_second": "service, GiB-seconds",
    "cloudrun.request": "service, requests",
    "firestore.read": "Firestore, reads",
    "firestore.write": "Firestore, writes",
    "firestore.delete": "Firestore, deletes",
    "firestore.gib_month": "Firestore, GiB",
    "gcs.class_a": "bucket, class A",
    "gcs.class_b": "bucket, class B",
    "gcs.gib_month": "bucket, GiB",
    "cloudtasks.operation": "Cloud Tasks, operations",
    "cloudscheduler.job_month": "Cloud Scheduler, jobs",
    "artifactregistry.gib_month": "Artifact Registry, GiB",
}
TASK_ITEMS = {"cloudrun.vcpu_second": "tasks, vCPU-seconds", "cloudrun.gib_second": "tasks, GiB-seconds"}


def used_by_ork(
    runs: float, *, days: int = DAYS, per_run: Operations = THREE_TASKS, tasks: int = TASKS_OF_A_RUN
) -> dict[str, float]:
    """What the control plane uses in so many days with so many runs a day."""
    operations = {
        name: (per_run.counts.get(name, 0) * runs + IDLE_TICK.counts.get(name, 0) * SAFETY_TICKS) * days
        for name in {**per_run.counts, **IDLE_TICK.counts}
    }
    ticks, wakes = operations.pop("ticks"), runs * tasks * days
    cold_starts = min(SAFETY_TICKS + runs, MOST_COLD_STARTS) * days
    seconds = ticks * TICK_SECONDS + wakes * WAKE_SECONDS + cold_starts * COLD_START_SECONDS
    months, kept = days / DAYS, runs * KEPT_DAYS
    return {
        **operations,
        "cloudrun.request": ticks + wakes,
        "cloudrun.service_vcpu_second": seconds,
        "cloudrun.service_gib_second": seconds * SERVICE_GIB,
        "firestore.gib_month": kept * STATE_KIB / 2**20 * months,
        "gcs.gib_month": kept * DOCUMENT_KIB / 2**20 * months,
        "cloudscheduler.job_month": months,
        "artifactregistry.gib_month": IMAGE_GIB * months,
    }


def used_by_tasks(prices: Prices, attempts: float, seconds: float = TASK_SECONDS) -> dict[str, float]:
    """What attempts use of Cloud Run, billed for the shortest time that it bills."""
    billed = max(seconds, prices.billing["cloudrun"].minimum_seconds) * attempts
    return {"cloudrun.vcpu_second": billed * TASK_VCPUS, "cloudrun.gib_second": billed * TASK_GIB}


def cost(prices: Prices, used: Mapping[str, float]) -> dict[str, float]:
    return {name: prices.items[name].usd * number for name, number in used.items()}


def free_in_a_month(text: str | None) -> float:
    """How much the price file says is free: `50,000 a day`, `1 GiB`. What holds in some regions only does not count."""
    found = re.match(r"([\d,.]+)", text or "")
    if found is None or "in three regions" in str(text):
        return 0.0
    return float(found[1].replace(",", "")) * (DAYS if "a day" in str(text) else 1)


def after_free(prices: Prices, used: Mapping[str, float]) -> dict[str, float]:
    rest = {name: max(0.0, number - free_in_a_month(prices.items[name].free)) for name, number in used.items()}
    return cost(prices, rest)


# ── tables ───────────────────────────────────────────────────────────────────────────────────────


def bill_table() -> str:
    prices = shipped_prices()
    used = [used_by_ork(runs) for runs in RUNS_A_DAY]
    tasks = [used_by_tasks(prices, runs * TASKS_OF_A_RUN * DAYS) for runs in RUNS_A_DAY]
    rows = [["A month with", *(f"{runs:,} runs a day" for runs in RUNS_A_DAY)]]
    for name, shown in ITEMS.items():
        rows.append([shown, *(f"{_quantity(each[name])} · {_dollars(cost(prices, each)[name])}" for each in used)])
    rows.append(["**Ork, list price**", *(f"**{_total(cost(prices, each))}**" for each in used)])
    rows.append(["**Ork, after the free quotas**", *(f"**{_total(after_free(prices, each))}**" for each in used)])
    for name, shown in TASK_ITEMS.items():
        rows.append([shown, *(f"{_quantity(each[name])} · {_dollars(cost(prices, each)[name])}" for each in tasks)])
    rows.append(["tasks, after the free quotas", *(_total(after_free(prices, each)) for each in tasks)])
    return _markdown(rows)


def price_table() -> str:
    prices = shipped_prices()
    rows = [["Price", "Dollars", "Free", "Source"]]
    for name in (*ITEMS, *TASK_ITEMS):
        price = prices.items[name]
        source = prices.sources[price.source]
        checked = "" if source.is_checked else " (from memory: check it)"
        rows.append(
            [
                f"`{name}`",
                f"{price.usd:.10f}".rstrip("0").rstrip("."),
                price.free or "–",
                f"{source.title}, {source.date}{checked}",
            ]
        )
    return _markdown(rows)


def _dollars(usd: float) -> str:
    return f"${usd:,.2f}" if usd == 0 or usd >= 0.005 else "< $0.01"


def _total(costs: Mapping[str, float]) -> str:
    return f"${sum(costs.values()):,.2f}"


def _quantity(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:.2f}"


def _markdown(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def tables() -> dict[str, dict[str, str]]:
    """By page and name of the mark that stands before each."""
    from perf.aws import aws_price_table, aws_table
    from perf.others import comparison_table, day_table, source_table

    return {
        "aws.md": {"bill": aws_table(), "prices": aws_price_table()},
        "gcp.md": {"bill": bill_table(), "prices": price_table()},
        "comparison.md": {"day": day_table(), "comparison": comparison_table(), "sources": source_table()},
    }


def with_tables(text: str, made: Mapping[str, str]) -> str:
    """The page with each table between its marks replaced."""
    for name, table in made.items():
        begin, end = f"<!-- {name}: made by python -m perf.bill -->", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        assert end in rest, f"{begin} or {end} is missing"
        text = f"{before}{begin}\n{table}\n{end}{rest.partition(end)[2]}"
    return text


def main() -> None:
    for page, made in tables().items():
        if "--write" in sys.argv:
            path = DOCS / page
            path.write_text(with_tables(path.read_text(), made))
        else:
            print(*(f"{page}, {name}\n\n{table}\n" for name, table in made.items()), sep="\n")


if __name__ == "__main__":
    main()
