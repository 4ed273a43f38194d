"""Runs whose tasks are on Kubernetes: a real API server and Job controller, and real containers."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.buckets import new_bucket
from tests.docker import own_registry
from tests.integration.location_images import location_image
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.proxy import FaultProxy
from tests.kubernetes.scene import PACE, Scene
from tests.serving import scheduler_token, start_ork

pytestmark = [pytest.mark.slow, pytest.mark.kubernetes]

COUNTING = """
import os, sys
def main(item=None, bad=()):
    with open(os.environ["LEDGER"], "a") as file:
        file.write(os.environ["ORK_ATTEMPT_ID"] + "\\n")
    print("item", item, flush=True)
    if item in bad:
        sys.exit(7)
    return item
"""
FAN_OUT = """
name: fan
tasks:
  items: {file: items.py, inputs: {count: COUNT}}
  each:
    file: work.py
    foreach: {ref: items}
    inputs: {item: {ref: item}, bad: [3, 5, 8]}
    retries: 1
    env: {LEDGER: 'LEDGER_PATH'}
  after: {file: work.py, depends_on: [each], run_if: all_done, env: {LEDGER: 'LEDGER_PATH'}}
"""
PAIR = """
name: pair
tasks:
  count:
    image: IMAGE
    command: [sh, -c, 'echo counting; set -- $TEXT; echo "{\\"words\\": $#}" > /output/result.json']
    env: {TEXT: to be or not to be}
    output: {from_file: /output/result.json}
  pass_on:
    image: IMAGE
    command: [sh, -c, 'cat /data/in.json; cp /data/in.json /data/out.json']
    depends_on: [count]
    input: {to_file: /data/in.json}
    output: {from_file: /data/out.json}
  silent: {image: IMAGE, command: ['true'], output: {from_file: /data/out.json}}
"""


@pytest.fixture
def scene(tmp_path: Path, cluster: Cluster, namespace: str, plain_environment: dict[str, str]) -> Scene:
    return Scene(tmp_path, cluster, namespace, plain_environment, new_bucket("gs"), cluster.kubeconfig)


def fan_out(scene: Scene, count: int) -> dict[str, str]:
    """Files of a fan-out in which three items fail."""
    flow = FAN_OUT.replace("COUNT", str(count)).replace("LEDGER_PATH", str(scene.ledger))
    scene.write("fan.yaml", flow)
    files = {"work.py": COUNTING, "items.py": "def main(count): return list(range(count))\n"}
    for name, text in files.items():
        scene.write(name, text)
    return files


def judge_fan_out(scene: Scene, run: str, count: int) -> None:
    shown = scene.ended(run, 1800)
    assert shown["status"] == "failed"  # three shards failed, and `after` ran all the same
    starts = scene.starts()
    assert len(starts) == len(set(starts))
    each = [name for name in starts if "/each/" in name]
    again = sorted(name for name in each if name.endswith("/2"))
    assert again == sorted(f"{run}/each/{index}/2" for index in (3, 5, 8))
    assert len(each) == count + 3


def test_the_sample_a_plain_pair_and_a_fan_out_run_by_a_scheduler_with_a_bucket(
    scene: Scene, cluster: Cluster, tree: Path
) -> None:
    etl = tree / "examples" / "etl"
    sample = {
        str(path.relative_to(etl)): path.read_text() for path in etl.rglob("*") if path.suffix in (".py", ".yaml")
    }
    for name, text in sample.items():
        scene.write(name, text)
    files = {**sample, **fan_out(scene, 12)}
    scene.write("pair.yaml", PAIR.replace("IMAGE", cluster.images.busybox))
    scene.workers(scene.project_image(cluster.daemon, files))
    assert "rights complete in namespace" in scene.ork("workers")
    with scene.scheduler():
        runs = {name: scene.started(name) for name in ("workflow.yaml", "pair.yaml", "fan.yaml")}
        judge_fan_out(scene, runs["fan.yaml"], 12)
        shown = scene.ended(runs["workflow.yaml"])
        assert shown["status"] == "success", shown
        pair = scene.ended(runs["pair.yaml"])
        assert json.loads(scene.ork("output", runs["pair.yaml"], "pass_on")) == {"words": 6}
        assert scene.ork("logs", runs["pair.yaml"], "count") == "counting\n"
        assert '{"words":6}' in scene.ork("logs", runs["pair.yaml"], "pass_on")
        why = scene.ork("why", f"{runs['pair.yaml']}/silent")
        assert (pair["status"], "it left no output: there is no file /data/out.json" in why) == ("failed", True)
        scene.leaves_nothing()
    created = [each for each in cluster.requests() if (each.verb, each.resource) == ("create", "jobs")]
    of_fan_out = [each for each in created if each.namespace == scene.namespace and each.name.startswith("ork-g-")]
    assert len(of_fan_out) <= 3  # the first, and those that failed, which may come back in two


def test_a_location_runs_by_ticks_alone_with_documents_through_the_server(
    tmp_path: Path, cluster: Cluster, namespace: str, plain_environment: dict[str, str]
) -> None:
    stack = ExitStack()
    home = tmp_path / "home"
    home.mkdir()
    store = {"ORK_STORE": f"sqlite:{home}/state.db", **PACE}
    process = start_ork(home, {**plain_environment, **store}, "serve", "--port", "0", "--no-scheduler")
    try:
        registry = stack.enter_context(own_registry())
        assert process.stdout is not None
        url = process.stdout.readline().partition("url=")[2].split()[0]
        token = scheduler_token(home, {**plain_environment, **store})
        environment = {**plain_environment, **store, "ORK_TOKEN": token}
        scene = Scene(tmp_path, cluster, namespace, environment, url, cluster.kubeconfig)
        files = fan_out(scene, 10)
        files["fan.yaml"] = (tmp_path / "fan.yaml").read_text()
        for name in files:
            (tmp_path / name).unlink()
        registry.push(cluster.daemon, location_image(cluster.daemon, "ork-test/location:1", files), "flows:1")
        image = f"{registry.address}/flows:1"
        scene.write("workers.yaml", "default: {pod_template: pod.yaml, memory: 256Mi}\n")
        scene.write("locations.yaml", f"- {{name: flows, image: '{image}'}}\n")
        scene.ork("locations", "refresh", "flows")
        run = scene.started("fan")
        scene.until(lambda: scene.ork("tick") is not None and scene.show(run)["status"] != "running", 500)
        judge_fan_out(scene, run, 10)
        scene.ork("tick")
        scene.leaves_nothing()
    finally:
        process.kill()
        process.communicate()
        stack.close()


def test_the_example_runs(scene: Scene, cluster: Cluster, tree: Path) -> None:
    example = tree / "examples" / "kubernetes"
    files = {str(path.relative_to(example)): path.read_text() for path in example.rglob("*") if path.is_file()}
    image = scene.project_image(cluster.daemon, files)
    for name, text in files.items():
        if name != "ork.yaml":
            scene.write(
                name,
                text.replace("registry.example.org/kubernetes:1", image).replace(
                    "busybox:1.37", cluster.images.busybox
                ),
            )
    with scene.scheduler():
        run = scene.started("workflow.yaml")
        assert scene.ended(run)["status"] == "success", scene.show(run)
        assert json.loads(scene.ork("output", run, "write")) == {"letters": 13}
        assert "to has 2 letters" in scene.ork("logs", run, "length[0]")
        scene.leaves_nothing()


@pytest.mark.soak
def test_a_fan_out_of_200_with_three_failing_shards_needs_few_requests(
    tmp_path: Path, cluster: Cluster, namespace: str, proxy: FaultProxy, plain_environment: dict[str, str]
) -> None:
    scene = Scene(tmp_path, cluster, namespace, plain_environment, new_bucket("gs"), proxy.kubeconfig)
    scene.workers(scene.project_image(cluster.daemon, fan_out(scene, 200)))
    with scene.scheduler():
        judge_fan_out(scene, scene.started("fan.yaml"), 200)
        scene.leaves_nothing()
    jobs = [call for call in proxy.calls if call.path.endswith("/jobs") and call.method == "POST"]
    assert len(jobs) <= 5  # `items`, `after`, the fan-out, and its failed shards, which may come back in two
