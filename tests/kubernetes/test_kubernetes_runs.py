"""Runs whose tasks are on Kubernetes: a real API server and Job controller, and real containers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.buckets import CREDENTIALS, new_bucket, server_or_skip
from tests.docker import own_registry
from tests.integration.location_images import location_image
from tests.kubernetes.cluster import Cluster, scheduler_name
from tests.kubernetes.proxy import FaultProxy
from tests.kubernetes.scene import PACE, Scene
from tests.kubernetes.signed_requests import only_signed
from tests.serving import scheduler_token, serving

pytestmark = [pytest.mark.slow, pytest.mark.kubernetes]

KEYS = {name: value for name, value in CREDENTIALS.items() if name.startswith("AWS_")}
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
  lines: {image: IMAGE, command: [sh, -c, 'printf "one\\ntwo\\n" > /out/lines.txt'], output: {from_file: /out/lines.txt}}
  tree: {image: IMAGE, command: [sh, -c, 'mkdir -p /out/tree.d/deep; echo three > /out/tree.d/deep/3'], output: {from_file: /out/tree.d}}
  join:
    image: IMAGE
    command:
      - sh
      - -c
      - 'printf "\\"%s\\"" "$(cat "$0" "$1"/deep/3 "$COUNTED" | tr -d "\\n\\"{}")" > /out/all.json'
      - {ref: lines, as: file}
      - {ref: tree, as: file}
    env: {COUNTED: {ref: count, as: file}}
    output: {from_file: /out/all.json}
  silent: {image: IMAGE, command: ['true'], output: {from_file: /data/out.json}}
"""


@pytest.fixture
def scene(tmp_path: Path, cluster: Cluster, namespace: str, plain_environment: dict[str, str]) -> Scene:
    return Scene(tmp_path, cluster, namespace, plain_environment, new_bucket("gs"), cluster.kubeconfig)


COUNT_FILES = {"work.py": COUNTING, "items.py": "def main(count): return list(range(count))\n"}


def fan_out_flow(scene: Scene, count: int) -> str:
    """A fan-out in which three items fail; its files are `COUNT_FILES`."""
    return FAN_OUT.replace("COUNT", str(count)).replace("LEDGER_PATH", str(scene.ledger))


def judge_fan_out(scene: Scene, run: str, count: int) -> None:
    shown = scene.ended(run, 1800)
    assert shown["status"] == "failed"  # three shards failed, and `after` ran all the same
    starts = scene.starts()
    assert len(starts) == len(set(starts))
    each = [name for name in starts if "/each/" in name]
    again = sorted(name for name in each if name.endswith("/2"))
    assert again == sorted(f"{run}/each/{index}/2" for index in (3, 5, 8))
    assert len(each) == count + 3


@dataclass
class Setting:
    """What drives the runs, and where their documents are."""

    scene: Scene
    ticks: bool

    @contextmanager
    def driven(self) -> Iterator[None]:
        with ExitStack() as stack:
            if not self.ticks:
                stack.enter_context(self.scene.scheduler())
            yield

    def ended(self, run: str) -> dict[str, Any]:
        if self.ticks:
            self.scene.until(lambda: self.scene.ork("tick") is not None and self.scene.is_over(run), 900)
        return self.scene.ended(run, 900)

    def leaves_nothing(self) -> None:
        if self.ticks:
            self.scene.ork("tick")
        self.scene.leaves_nothing()


@pytest.fixture
def setting(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    cluster: Cluster,
    namespace: str,
    plain_environment: dict[str, str],
) -> Iterator[Setting]:
    driver, store = request.param
    with ExitStack() as stack:
        environment, secret = dict(plain_environment), None
        if store == "server":
            url, more = stack.enter_context(documents_server(tmp_path, plain_environment))
            environment |= more
        elif store == "s3":
            url, secret = new_bucket("s3"), "bucket-keys"
            port = stack.enter_context(only_signed(server_or_skip("s3").port, KEYS["AWS_ACCESS_KEY_ID"]))
            url = f"{url.rpartition(':')[0]}:{port}"
            about = {"metadata": {"name": secret}, "stringData": KEYS}
            cluster.request("POST", f"/api/v1/namespaces/{namespace}/secrets", about)
            environment |= KEYS
        else:
            url = new_bucket(store)
        kubeconfig = cluster.scheduler(namespace)
        scene = Scene(tmp_path, cluster, namespace, environment, url, kubeconfig, objects_secret=secret)
        yield Setting(scene, driver == "ticks")


@contextmanager
def documents_server(folder: Path, environment: dict[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """The URL of a server that keeps documents, and variables of a scheduler that uses it."""
    home = folder / "home"
    home.mkdir()
    store = {"ORK_STORE": f"sqlite:{home}/state.db", **PACE}
    with serving(home, {**environment, **store}, "--no-scheduler") as served:
        yield served.url, {**store, "ORK_TOKEN": scheduler_token(home, {**environment, **store})}


@pytest.mark.parametrize(
    "setting",
    [
        ("scheduler", "s3"),
        ("ticks", "server"),
        pytest.param(("scheduler", "server"), marks=pytest.mark.soak),
        pytest.param(("ticks", "gs"), marks=pytest.mark.soak),
    ],
    ids=" × ".join,
    indirect=True,
)
def test_the_sample_a_pair_with_files_and_a_fan_out_in_a_location(
    setting: Setting, cluster: Cluster, tree: Path
) -> None:
    scene = setting.scene
    etl = tree / "examples" / "etl"
    sample = {
        str(path.relative_to(etl)): path.read_text() for path in etl.rglob("*") if path.suffix in (".py", ".yaml")
    }
    for name, text in sample.items():
        scene.write(name, text)
    scene.write("pair.yaml", PAIR.replace("IMAGE", cluster.images.busybox))
    scene.workers(scene.project_image(cluster.daemon, sample))
    with own_registry() as registry:
        files = {**COUNT_FILES, "fan.yaml": fan_out_flow(scene, 10)}
        registry.push(cluster.daemon, location_image(cluster.daemon, "ork-test/location:1", files), "flows:1")
        scene.write("locations.yaml", f"- {{name: flows, image: '{registry.address}/flows:1'}}\n")
        assert "rights complete in namespace" in scene.ork("workers")
        with setting.driven():
            scene.ork("locations", "refresh", "flows")
            runs = {name: scene.started(name) for name in ("workflow.yaml", "pair.yaml", "fan")}
            ends = {name: setting.ended(run) for name, run in runs.items()}
            judge_fan_out(scene, runs["fan"], 10)
            assert ends["workflow.yaml"]["status"] == "success", ends["workflow.yaml"]
            judge_pair(scene, runs["pair.yaml"], ends["pair.yaml"])
            setting.leaves_nothing()
    asked = cluster.requests(scheduler_name(scene.namespace))
    made = [each.name for each in asked if (each.verb, each.resource) == ("create", "jobs")]
    assert len([name for name in made if name.startswith("ork-g-")]) <= 3  # those that failed may come back in two
    assert [each for each in asked if each.status == 403] == []


def judge_pair(scene: Scene, run: str, shown: dict[str, Any]) -> None:
    assert json.loads(scene.ork("output", run, "pass_on")) == {"words": 6}
    assert scene.ork("logs", run, "count") == "counting\n"
    assert '{"words":6}' in scene.ork("logs", run, "pass_on")
    assert json.loads(scene.ork("output", run, "join")) == "onetwothreewords:6"
    why = scene.ork("why", f"{run}/silent")
    assert (shown["status"], "it left no output: there is no file /data/out.json" in why) == ("failed", True)


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
    for name, text in {**COUNT_FILES, "fan.yaml": fan_out_flow(scene, 200)}.items():
        scene.write(name, text)
    scene.workers(scene.project_image(cluster.daemon, COUNT_FILES))
    with scene.scheduler():
        judge_fan_out(scene, scene.started("fan.yaml"), 200)
        scene.leaves_nothing()
    jobs = [call for call in proxy.calls if call.path.endswith("/jobs") and call.method == "POST"]
    assert len(jobs) <= 5  # `items`, `after`, the fan-out, and its failed shards, which may come back in two
