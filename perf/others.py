"""One day of five schedules on other services: prices with their sources, and the arithmetic. Printed by `python -m perf.bill`."""

from __future__ import annotations

from typing import NamedTuple

from ork.definition.prices_file import shipped_prices
from perf.bill import (
    DAYS,
    FAN_OUT_100,
    SAFETY_TICKS,
    THREE_TASKS,
    _markdown,
    cost,
    used_by_ork,
    used_by_tasks,
)

TASK_SECONDS = 60.0


class Flow(NamedTuple):
    """A schedule of the day, as tests/cloud runs it in the box. `attempts` of a run: retries included."""

    name: str
    when: str
    runs: int
    attempts: int
    what: str


DAY = (
    Flow("half", "every 30 minutes", 48, 2, "two tasks, one after the other"),
    Flow("hourly", "every hour", 24, 2, "two tasks, one after the other"),
    Flow("fan", "every three hours", 8, 12, "a fan-out of 12"),
    Flow("fails", "every six hours", 4, 2, "a task that fails, and is retried once"),
    Flow("noon", "at noon", 1, 2, "two tasks, one after the other"),
)
RUNS = sum(flow.runs for flow in DAY)
ATTEMPTS = sum(flow.runs * flow.attempts for flow in DAY)


class Source(NamedTuple):
    """`how`: `page` (a stored copy of the provider's own page), `quoted` (a third party's quotation) or `memory`."""

    what: str
    usd: float
    unit: str
    where: str
    date: str
    how: str


# Dates are those of the page or of its quotation; a stored copy without a date has the day on which it was read.
SOURCES = {
    "composer": Source("Cloud Composer 3, smallest environment for production", 300.0, "month, the lower end of $300–400", "adriennevermorel.com/notes/cloud-composer-cost-and-capabilities", "read 2026-11-18", "quoted"),
    "dcu": Source("Cloud Composer 3, for reference", 0.06, "1,000 milli-DCU-hours", "cloud.google.com/composer/pricing", "read 2026-11-18", "page"),
    "mwaa": Source("Amazon MWAA, environment mw1.small", 0.49, "hour", "dev.classmethod.jp/articles/amazon-mwaa-serverless-cost-comparison", "2025-11-30", "quoted"),
    "mwaa_serverless": Source("Amazon MWAA Serverless, task time, Tokyo, at least one minute each", 0.104, "hour", "dev.classmethod.jp/articles/amazon-mwaa-serverless-cost-comparison", "2025-11-30", "quoted"),
    "dagster_plan": Source("Dagster+ Solo", 10.0, "month", "dagster.io/pricing", "2026-10-07", "quoted"),
    "dagster_credit": Source("Dagster+ Solo, pay as you go; one credit for each step", 0.040, "credit", "dagster.io/pricing; docs.dagster.io, credit usage", "2026-10-07", "quoted"),
    "prefect": Source("Prefect Cloud Starter: 20 deployments, 75 hours of Prefect Serverless", 100.0, "month", "prefect.io/pricing", "2026-09-20", "quoted"),
    "step_functions": Source("AWS Step Functions, Standard, without the free 4,000 a month", 0.025, "1,000 state transitions", "aws.amazon.com/step-functions/pricing", "read 2026-11-18", "page"),
}  # fmt: skip
HOURS = 24
TRANSITIONS_OF_A_RUN = 1  # besides one for each attempt
FARGATE_GIB = 2.0  # the least that goes with one processor


class Row(NamedTuple):
    name: str
    orchestration: float  # dollars for the day
    tasks: float | None  # dollars for the day; None: part of the orchestration
    note: str


def rows() -> list[Row]:
    """Every service with the same day. Free quotas are not subtracted, from nobody."""
    prices = shipped_prices()
    usd = {name: source.usd for name, source in SOURCES.items()}
    seconds = ATTEMPTS * TASK_SECONDS
    on_cloud_run = sum(cost(prices, used_by_tasks(prices, ATTEMPTS, TASK_SECONDS)).values())
    on_fargate = seconds * (
        prices.items["fargate.vcpu_second"].usd + FARGATE_GIB * prices.items["fargate.gib_second"].usd
    )
    transitions = ATTEMPTS + RUNS * TRANSITIONS_OF_A_RUN
    credits_and_plan = ATTEMPTS * usd["dagster_credit"] + usd["dagster_plan"] / DAYS
    return [
        Row("Ork on Cloud Run and Firestore", ork_day(), on_cloud_run, f"{SAFETY_TICKS} safety ticks included"),
        Row("AWS Step Functions", transitions / 1000 * usd["step_functions"], on_fargate, f"{transitions} transitions; tasks on Fargate"),
        Row("Amazon MWAA Serverless", seconds / 3600 * usd["mwaa_serverless"], None, "runs operators of AWS; your own code needs Fargate or Lambda besides"),
        Row("Prefect Cloud Starter", usd["prefect"] / DAYS, on_cloud_run, "tasks on Cloud Run jobs; 2.5 hours a day of its own compute are included"),
        Row("Cloud Composer 3", usd["composer"] / DAYS, None, "tasks run on its own workers"),
        Row("Dagster+ Solo", credits_and_plan, on_cloud_run, f"{ATTEMPTS} credits; tasks on Cloud Run jobs (hybrid)"),
        Row("Amazon MWAA", HOURS * usd["mwaa"], None, "one mw1.small, tasks run on its own worker"),
    ]  # fmt: skip


def ork_day() -> float:
    """Runs of one or two tasks are counted as runs of three, fan-outs of 12 as those of 100: more than they cost."""
    prices = shipped_prices()
    fans = sum(flow.runs for flow in DAY if flow.name == "fan")
    used = used_by_ork(RUNS - fans, days=1, per_run=THREE_TASKS)
    idle = used_by_ork(0, days=1)
    fan_outs = used_by_ork(fans, days=1, per_run=FAN_OUT_100, tasks=12)
    return sum(sum(cost(prices, each).values()) for each in (used, fan_outs)) - sum(cost(prices, idle).values())


# ── tables ───────────────────────────────────────────────────────────────────────────────────────


def day_table() -> str:
    made = [["Schedule", "Runs", "Attempts", "A run"]]
    made += [[flow.when, str(flow.runs), str(flow.runs * flow.attempts), flow.what] for flow in DAY]
    return _markdown(
        [
            *made,
            [
                "**together**",
                f"**{RUNS}**",
                f"**{ATTEMPTS}**",
                f"each attempt takes {TASK_SECONDS:.0f} s of one processor",
            ],
        ]
    )


def comparison_table() -> str:
    made = [["Service", "Orchestration, a day", "Tasks, a day", "Both, a month", ""]]
    for row in rows():
        month = (row.orchestration + (row.tasks or 0.0)) * DAYS
        tasks = "included" if row.tasks is None else f"${row.tasks:.2f}"
        made.append(
            [
                row.name,
                f"${row.orchestration:.3f}" if row.orchestration < 1 else f"${row.orchestration:.2f}",
                tasks,
                f"${month:,.0f}" if month >= 20 else f"${month:.2f}",
                row.note,
            ]
        )
    return _markdown(made)


def source_table() -> str:
    made = [["What", "Dollars", "Source", "Date", "Known from"]]
    shown = {"page": "the provider's page", "quoted": "a quotation by others", "memory": "memory: check it"}
    return _markdown(
        [
            *made,
            *(
                [
                    each.what,
                    f"{each.usd:g} per {each.unit}",
                    each.where,
                    each.date,
                    shown[each.how],
                ]
                for each in SOURCES.values()
            ),
        ]
    )
