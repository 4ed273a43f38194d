"""What an installation on AWS costs in a month: EKS, RDS, S3, and tasks on Fargate. Printed by `python -m perf.bill`."""

from __future__ import annotations

from ork.definition.prices_file import shipped_prices
from perf.bill import (
    DAYS,
    DOCUMENT_KIB,
    KEPT_DAYS,
    RUNS_A_DAY,
    TASK_GIB,
    TASK_SECONDS,
    TASK_VCPUS,
    TASKS_OF_A_RUN,
    THREE_TASKS,
    _dollars,
    _markdown,
    _quantity,
)
from perf.others import Source

HOURS = 24 * DAYS
MACHINES = 2  # of the control plane, in two zones
DATABASE_GIB = 20
LISTINGS = 6 * 60 * HOURS  # a month, at most: a scheduler lists while something runs

SOURCES = {
    "eks": Source("EKS, a cluster", 0.10, "hour", "cloudburn.io/blog/amazon-eks-pricing", "2026-03-13", "quoted"),
    "machine": Source("EC2 t4g.medium, 2 vCPUs and 4 GiB", 0.0336, "hour", "aws.amazon.com/ec2/pricing/on-demand", "2026-11-18", "memory"),
    "database": Source("RDS for PostgreSQL db.t4g.small, one zone", 0.032, "hour", "infratally.com/articles/aws-rds-pricing-explained-2026.html", "read 2026-11-18", "quoted"),
    "disk": Source("RDS storage gp3", 0.115, "GB and month", "usage.ai/blogs/aws/reserved-instances/rds/pricing-calculator", "2026-06-01", "quoted"),
}  # fmt: skip
# By the names of the price file of `ork cost`.
SHIPPED = {"s3.class_a": "S3, class A", "s3.class_b": "S3, class B", "s3.gib_month": "S3, GiB"}
TASKS = {"fargate.vcpu_second": "tasks on Fargate, vCPU-seconds", "fargate.gib_second": "tasks on Fargate, GiB-seconds"}


def used_by_ork(runs: int) -> dict[str, float]:
    """In a month. Operations of a run are those that tests/cloud/test_bill_counts.py counts, and listings besides."""
    busy = min(1.0, runs * TASKS_OF_A_RUN * TASK_SECONDS / 86_400)
    return {
        "eks": HOURS,
        "machine": HOURS * MACHINES,
        "database": HOURS,
        "disk": DATABASE_GIB,
        "s3.class_a": runs * DAYS * THREE_TASKS.counts["gcs.class_a"] + LISTINGS * busy,
        "s3.class_b": runs * DAYS * THREE_TASKS.counts["gcs.class_b"],
        "s3.gib_month": runs * KEPT_DAYS * DOCUMENT_KIB / 2**20,
    }


def used_by_tasks(runs: int) -> dict[str, float]:
    billed = max(TASK_SECONDS, shipped_prices().billing["fargate"].minimum_seconds) * runs * DAYS * TASKS_OF_A_RUN
    return {"fargate.vcpu_second": billed * TASK_VCPUS, "fargate.gib_second": billed * TASK_GIB}


def price(name: str) -> float:
    return SOURCES[name].usd if name in SOURCES else shipped_prices().items[name].usd


def cost(used: dict[str, float]) -> float:
    return sum(price(name) * number for name, number in used.items())


def aws_table() -> str:
    names = {**{name: f"{source.what}, {source.unit}s" for name, source in SOURCES.items()}, **SHIPPED}
    names["disk"] = "RDS storage, GB"
    rows = [["A month with", *(f"{runs:,} runs a day" for runs in RUNS_A_DAY)]]
    columns = [used_by_ork(runs) for runs in RUNS_A_DAY]
    for name, shown in names.items():
        rows.append([shown, *(f"{_quantity(each[name])} · {_dollars(price(name) * each[name])}" for each in columns)])
    rows.append(["**Ork**", *(f"**{_dollars(cost(each))}**" for each in columns)])
    tasks = [used_by_tasks(runs) for runs in RUNS_A_DAY]
    for name, shown in TASKS.items():
        rows.append([shown, *(f"{_quantity(each[name])} · {_dollars(price(name) * each[name])}" for each in tasks)])
    return _markdown(rows)


def aws_price_table() -> str:
    rows = [["Price", "Dollars", "Unit", "Source"]]
    for source in SOURCES.values():
        checked = " (from memory: check it)" if source.how == "memory" else ""
        rows.append([source.what, f"{source.usd:g}", source.unit, f"{source.where}, {source.date}{checked}"])
    return _markdown(rows)
