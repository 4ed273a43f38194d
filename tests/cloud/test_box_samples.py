"""The three-task sample and plain images on Cloud Run, with documents in each kind of bucket, by a scheduler and by ticks alone. And what a run costs."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("google.cloud.run_v2", reason="the extra `gcp` is not installed")

from tests.buckets import CREDENTIALS, new_bucket
from tests.cloud.bucket_volumes import GcsBucket
from tests.cloud.fake_gcs import BUCKET, LIST, READ, WRITE, FakeGcs
from tests.cloud.runners import DockerRunner
from tests.cloud.test_cloud_run_runs import Yard
from tests.conftest import OrkCli
from tests.docker import busybox, daemon_or_skip, own_registry
from tests.integration.location_images import location_image

pytestmark = pytest.mark.slow

PLAIN = """
name: plain
tasks:
  first: {image: busybox, command: [sh, -c, "echo '[1, 2, 3]' > /out/n.json"], output: {from_file: /out/n.json}}
  second: {image: busybox, command: [sh, -c, "sed s/3/6/ /in/n.json > /out/n.json"], depends_on: [first],
           inputs: {n: {ref: tasks.first.output}}, input: {to_file: /in/n.json}, output: {from_file: /out/n.json}}
"""
# Of one run of the sample, on a scheduler that has run it before. docs/cloud-run.md has what that costs.
MOST_CALLS = 12
MOST_CLASS_A, MOST_CLASS_B = 20, 60


@pytest.fixture
def yard(tmp_path: Path, ork_cli: OrkCli, plain_environment: dict[str, str], tree: Path) -> Iterator[Yard]:
    """Its location is an image with the sample in it, in a registry; its worker configs are those of the sample."""
    daemon = daemon_or_skip()
    busybox(daemon)
    sample = tree / "examples" / "etl"
    files = {
        str(path.relative_to(sample)): path.read_text() for path in sample.rglob("*") if path.suffix in (".py", ".yaml")
    }
    credentials = "ENV " + " ".join(f"{name}={value}" for name, value in CREDENTIALS.items() if name.startswith("AWS_"))
    location_image(daemon, "etl-location", {**files, "plain.yaml": PLAIN}, credentials)
    environment = {**plain_environment, **CREDENTIALS, "DOCKER_HOST": daemon.url}
    made = Yard(tmp_path, DockerRunner(daemon), ork_cli, environment)
    shutil.copy(tree / "tests" / "samples" / "workers.yaml", tmp_path)
    with own_registry() as registry:
        registry.push(daemon, "etl-location", "etl:1")
        made.write("locations.yaml", f"- {{name: etl, image: '{registry.address}/etl:1'}}\n")
        yield made
    made.cloud.close()


@pytest.fixture
def drive(yard: Yard) -> Iterator[Callable[[str, str], None]]:
    """Carries out a run of a workflow, by a scheduler that stays until the end of the test, or by ticks alone."""
    schedulers = []

    def driven(workflow: str, how: str) -> None:
        if how == "scheduler" and not schedulers:
            schedulers.append(yard.begin("scheduler"))
        run = yard.ork("trigger", workflow).strip()

        def is_over() -> bool:
            if how == "tick":
                yard.ork("tick")
            return yard.show()["status"] not in ("pending", "running")

        if how == "scheduler":
            yard.ork("watch", run, code=None)
        yard.until(is_over)

    yield driven
    for scheduler in schedulers:
        scheduler.terminate()
        scheduler.wait(60)


def succeeded(yard: Yard) -> None:
    shown = yard.show()
    assert shown["status"] == "success", shown


@pytest.mark.parametrize("how", ["scheduler", "tick"])
def test_the_sample_and_plain_images_on_google_cloud_storage(
    yard: Yard, gcs: FakeGcs, drive: Callable[[str, str], None], how: str
) -> None:
    yard.environment["ORK_OBJECTS"] = gcs.url()
    yard.cloud.buckets[BUCKET] = GcsBucket(gcs.endpoint, BUCKET, gcs.keys)
    yard.ork("locations", "refresh", "etl")
    drive("my_etl", how)
    succeeded(yard)
    yard.cloud.calls, operations = Counter(), len(gcs.operations)
    drive("my_etl", how)
    succeeded(yard)
    kinds = Counter(each.kind for each in gcs.operations[operations:])
    print(how, dict(yard.cloud.calls), dict(kinds))
    if how == "scheduler":
        assert yard.cloud.calls["jobs.run"] == 3
        assert yard.cloud.calls.total() <= MOST_CALLS, yard.cloud.calls
        assert kinds[WRITE] + kinds[LIST] <= MOST_CLASS_A, kinds
        assert kinds[READ] <= MOST_CLASS_B, kinds
    drive("plain", how)
    succeeded(yard)
    assert json.loads(yard.ork("output", "@last", "second")) == {"n": [1, 2, 6]}
    yard.until(lambda: not [job for job in yard.cloud.jobs if job.startswith("ork-a-")])
    assert yard.cloud.running() == 0


@pytest.mark.parametrize("how", ["scheduler", "tick"])
def test_the_sample_on_s3(yard: Yard, drive: Callable[[str, str], None], how: str) -> None:
    """Files of plain images need a bucket that Cloud Run can mount, and are refused in words that say so."""
    yard.environment["ORK_OBJECTS"] = new_bucket("s3")
    yard.ork("locations", "refresh", "etl")
    drive("my_etl", how)
    succeeded(yard)
    drive("plain", how)
    assert yard.show()["status"] == "failed"
    assert "ORK_OBJECTS to gs://" in yard.ork("show", "@last", "--json")


def test_the_dollars_in_the_docs_follow_from_their_prices_and_counts(tree: Path) -> None:
    page = (tree / "docs" / "cloud-run.md").read_text()
    class_a, class_b, vcpu, memory = (float(price) for price in re.findall(r"\| (0\.0\d+) \| (?:2|not)", page))
    counted = re.search(r"(\d+) class A and (\d+) class B", page)
    assert counted is not None
    runs, tasks = 1440, 3 * 1440
    operations = [runs * int(counted[1]) / 1000 * class_a, runs * int(counted[2]) / 1000 * class_b]
    for column, seconds in enumerate((10, 60)):
        parts = [tasks * seconds * vcpu, tasks * seconds * 2 * memory, *operations]
        for name, dollars in zip(
            ("vCPU", "memory", "class A", "class B", "together"), [*parts, sum(parts)], strict=True
        ):
            row = re.search(rf"^\| {name} \| \$(\S+) \| \$(\S+) \|$", page, re.M)
            assert row is not None
            assert row[column + 1] == f"{dollars:.2f}", name
    assert int(counted[1]) <= MOST_CLASS_A
    assert int(counted[2]) <= MOST_CLASS_B
