"""The price file: what comes with Ork is complete, and a project's own replaces single prices."""

from __future__ import annotations

import pytest

from ork.definition.prices_file import load_prices, shipped_prices


def test_every_shipped_price_has_a_source_with_a_date() -> None:
    shipped = shipped_prices()
    for name, price in shipped.items.items():
        assert shipped.sources[price.source].date is not None, name


@pytest.mark.parametrize(
    "name",
    [
        "cloudrun.vcpu_second",
        "cloudrun.gib_second",
        "cloudrun.request",
        "firestore.read",
        "firestore.write",
        "firestore.delete",
        "firestore.gib_month",
        "gcs.class_a",
        "gcs.class_b",
        "gcs.gib_month",
        "cloudtasks.operation",
        "cloudscheduler.job_month",
        "pubsub.tib",
        "artifactregistry.gib_month",
        "s3.class_a",
        "s3.class_b",
        "s3.gib_month",
    ],
)
def test_the_shipped_file_prices(name: str) -> None:
    assert (shipped_prices().usd(name) or 0) > 0


def test_prices_differ_by_region_and_are_for_one_unit() -> None:
    shipped = shipped_prices()
    assert shipped.usd("cloudrun.vcpu_second", "europe-west1") == 0.000018
    assert shipped.usd("cloudrun.vcpu_second", "europe-west3") == 0.0000216
    assert shipped.usd("firestore.write") == pytest.approx(0.09 / 100_000)


def test_a_projects_file_replaces_what_it_names() -> None:
    text = b"date: 2026-02-03\nprices: {local.vcpu_second: 0.1, firestore.read: {usd: 1, per: 1000}}"
    prices, problems = load_prices(text, "mine.yaml")
    assert not problems
    assert (prices.date, prices.file) == ("2026-02-03", "mine.yaml")
    assert (prices.usd("local.vcpu_second"), prices.usd("firestore.read")) == (0.1, 0.001)
    assert prices.usd("gcs.class_a") == shipped_prices().usd("gcs.class_a")
    assert prices.sources["project"].date == "2026-02-03"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "the price file is empty", "date"),
        ("prices: {local.second: 1}", "the price file has no `date`", "2026"),
        ("date: 2026-01-01", "the price file has no `prices`", "local.vcpu_second"),
        ("date: 2026-13-01\nprices: {}", "`2026-13-01` is not a date", "2026"),
        ("date: 2026-01-01\nprices: {cloudrn.gib_second: 1}", "no price `cloudrn.gib_second`", "cloudrun.gib_second"),
        ("date: 2026-01-01\nprices: {local.second: -1}", "`-1` is not between 0", None),
        ("date: 2026-01-01\nprices: {local.second: .nan}", "is not between 0", None),
        ("date: 2026-01-01\nprices: {local.second: {usd: 1, pr: 3}}", "`pr` is not a key of a price", "per"),
        ("date: 2026-01-01\nprices: {local.second: {usd: 1, per: 0}}", "is not between more than 0", None),
        ("date: 2026-01-01\nprices: {local.second: {per: 3}}", "the price has no `usd`", "usd"),
    ],
)
def test_mistakes_are_named(text: str, message: str, hint: str | None) -> None:
    _, problems = load_prices(text.encode(), "mine.yaml")
    found = next(problem for problem in problems if message in problem.message)
    assert hint is None or hint in (found.hint or "")
