"""What attempts cost in each place: sizes from worker configs, prices from the file, operations of the stores."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.compile.test_placement import CLOUD, HERE, IMAGE, loaded, placed, project_of

from ork.compile.pricing import Pricing
from ork.definition.prices_file import load_prices, shipped_prices
from ork.model.prices import AttemptPrice
from ork.model.record import replaced

SQLITE, FILES = "sqlite:.ork/ork.db", "journal:.ork/objects"
CPU, MEMORY = 0.000018, 0.000002


def price_of(
    task: str, project: Any, prices: str | None = None, store: str = SQLITE, objects: str = FILES
) -> AttemptPrice:
    """Of an attempt, by the version as it was deployed and the executor that the attempt got."""
    found = shipped_prices() if prices is None else load_prices(f"date: 2026-01-01\nprices: {prices}".encode(), "p")[0]
    pricing = Pricing(project, found, store, objects)
    return pricing.of(loaded(task, project).require().tasks[0], placed(task, project).executor)


@pytest.mark.parametrize(
    ("workers", "task", "vcpus", "gib", "usd"),
    [
        ("default: {image: 'etl:1'}\n", "{file: a.py}", 1, 0.5, CPU + MEMORY / 2),
        ("default: {image: 'etl:1', cpu: 2, memory: 4Gi}\n", "{file: a.py}", 2, 4, 2 * CPU + 4 * MEMORY),
        (
            "default: {image: 'etl:1', cpu: 2, memory: 4Gi}\n",
            "{file: a.py, resources: {cpu: 1}}",
            1,
            4,
            CPU + 4 * MEMORY,
        ),
        ("default: {image: 'etl:1', region: europe-west3}\n", "{file: a.py}", 1, 0.5, 0.0000216 + 0.0000012),
        ("default: {image: 'etl:1', gpu: nvidia-l4}\n", "{file: a.py}", 1, 0.5, CPU + MEMORY / 2 + 0.0001867),
    ],
)
def test_on_cloud_run(workers: str, task: str, vcpus: float, gib: float, usd: float) -> None:
    price = price_of(task, project_of(CLOUD, workers))
    assert (price.where, price.vcpus, price.gib, price.usd_per_second) == ("cloudrun", vcpus, gib, pytest.approx(usd))
    assert (price.billed.minimum_seconds, price.billed.step_seconds) == (60, 0.1)


@pytest.mark.parametrize(
    ("workers", "task", "why"),
    [
        (IMAGE, "{executor: cloudrun, job: nightly}", "the size of the Job nightly is not known"),
        ("default: {image: 'etl:1', gpu: nvidia-rtx-pro-6000}\n", "{file: a.py}", "no price of nvidia-rtx-pro-6000"),
    ],
)
def test_what_is_not_known_on_cloud_run(workers: str, task: str, why: str) -> None:
    price = price_of(task, project_of(CLOUD, workers))
    assert (price.usd_per_second, why in (price.why_unknown or "")) == (None, True)


def test_an_attempt_on_cloud_run_of_a_project_that_left_it() -> None:
    then, now = project_of(CLOUD, IMAGE), project_of(HERE, "")
    price = Pricing(now, shipped_prices(), SQLITE, FILES).of(
        loaded("{file: a.py}", then).require().tasks[0], "cloudrun"
    )
    assert (price.usd_per_second, "any more" in (price.why_unknown or "")) == (None, True)


@pytest.mark.parametrize(
    ("prices", "workers", "usd", "why"),
    [
        (None, "", 0, None),
        (None, "default: {where: local, cpu: 2, memory: 1Gi}\n", 0, None),
        ("{local.second: 0.5}", "", 0.5, None),
        ("{local.vcpu_second: 0.5}", "default: {where: local, cpu: 2}\n", 1, None),
        ("{local.vcpu_second: 0.5, local.gib_second: 1}", "default: {where: local, cpu: 2, memory: 1Gi}\n", 2, None),
        ("{local.vcpu_second: 0.5}", "", None, "no worker config says its `cpu`"),
        ("{local.gib_second: 1}", "default: {where: local, cpu: 2}\n", None, "no worker config says its `memory`"),
    ],
)
def test_machines_of_the_project_cost_what_it_says(
    prices: str | None, workers: str, usd: float | None, why: str | None
) -> None:
    price = price_of("{file: a.py}", project_of("", workers), prices)
    assert (price.where, price.usd_per_second, price.why_unknown) == ("local", usd, why)


def test_a_config_that_cannot_be_read_is_unknown_if_its_size_matters() -> None:
    project = replaced(project_of("", ""), broken_workers={"default": "it has errors"})
    spec = loaded("{file: a.py}", project_of("", "")).require().tasks[0]
    priced, _ = load_prices(b"date: 2026-01-01\nprices: {local.vcpu_second: 1}", "p")
    price = Pricing(project, priced, SQLITE, FILES).of(spec, "python")
    assert (price.usd_per_second, "it has errors" in (price.why_unknown or "")) == (None, True)
    assert Pricing(project, shipped_prices(), SQLITE, FILES).of(spec, "python").usd_per_second == 0


def test_a_sub_workflow_is_a_run_of_its_own() -> None:
    assert price_of("{workflow: other}", project_of(CLOUD, IMAGE)).usd_per_second == 0


@pytest.mark.parametrize(
    ("store", "objects", "names"),
    [
        (SQLITE, FILES, []),
        ("postgresql://db/ork", FILES, []),
        ("firestore://acme/ork", "gs://b/p", ["firestore", "gcs"]),
        (SQLITE, "s3://b/p", ["s3"]),
        (SQLITE, "az://b/p", ["azure"]),
    ],
)
def test_operations_are_those_of_the_stores(store: str, objects: str, names: list[str]) -> None:
    price = price_of("{file: a.py}", project_of(CLOUD, IMAGE), None, store, objects)
    assert list(dict.fromkeys(each.name.partition(".")[0] for each in price.operations)) == names
    assert all((each.usd is None) == (names == ["azure"]) for each in price.operations)


def test_the_figures_are_within_those_that_tests_guard() -> None:
    """A run of three tasks: at most 60 reads and 40 writes; a fan-out: at most two writes for each instance."""
    from ork.compile.pricing import OBJECTS_ELSEWHERE, STATE

    assert STATE["read"].per_run + 3 * STATE["read"].per_task <= 60
    assert STATE["write"].per_run + 3 * STATE["write"].per_task <= 40
    assert STATE["write"].per_instance <= 2
    # docs/cloud-run.md: 12 class A and 42 class B operations for three tasks, as a test counts them.
    assert (3 * OBJECTS_ELSEWHERE["class_a"].per_task, 3 * OBJECTS_ELSEWHERE["class_b"].per_task) == (12, 42)
