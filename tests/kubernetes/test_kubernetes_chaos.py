"""Everything that can fail fails, again and again: user code of an attempt starts at most once, every run ends, nothing is left."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import httpx2
import pytest

from tests.buckets import new_bucket, server_or_skip
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.proxy import FaultProxy
from tests.kubernetes.scene import Scene
from tests.kubernetes.subject import pods_of

pytestmark = [pytest.mark.slow, pytest.mark.kubernetes]

KILL_SECONDS = 5.0
WORK = """
import os, time
def main(item=None):
    with open(os.environ["LEDGER"], "a") as file:
        file.write(os.environ["ORK_ATTEMPT_ID"] + "\\n")
    time.sleep(2)
    return item
"""
FLOW = """
name: chaos
tasks:
  each:
    file: work.py
    foreach: ITEMS
    inputs: {item: {ref: item}}
    concurrency: 3
    retries: 20
    env: {LEDGER: 'LEDGER_PATH'}
  plain:
    image: IMAGE
    command: [sh, -c, 'echo $ORK_ATTEMPT_ID >> LEDGER_PATH; sleep 2; echo 1 > /out/x.json']
    output: {from_file: /out/x.json}
    retries: 20
  last: {file: work.py, depends_on: [each, plain], retries: 20, env: {LEDGER: 'LEDGER_PATH'}}
"""


class Chaos:
    """Faults until `seconds` have passed; then everything is healed."""

    def __init__(self, scene: Scene, cluster: Cluster, proxy: FaultProxy, seed: int) -> None:
        self.scene, self.cluster, self.proxy = scene, cluster, proxy
        self.random = random.Random(seed)
        self.deleted = 0

    def rage(self, seconds: float, outage: float) -> None:
        bucket = server_or_skip("gs")._process
        self.proxy.lose_answers(0.3, lambda call: not call.is_watch)
        self.proxy.cut_watches(3.0)
        end, scheduler = time.monotonic() + seconds, self.scene.begin("scheduler")
        halfway, most = time.monotonic() + seconds / 2, time.monotonic() + 10 * seconds
        kill_at = time.monotonic() + KILL_SECONDS
        while time.monotonic() < end or (not self.deleted and time.monotonic() < most):
            time.sleep(0.5)
            if self.random.random() < 0.2 or not self.deleted:
                self._delete_a_pod()
            if time.monotonic() > kill_at:
                kill_at = time.monotonic() + KILL_SECONDS
                scheduler.kill()
                scheduler.wait()
                scheduler = self.scene.begin("scheduler")
            if time.monotonic() > halfway:
                halfway = float("inf")
                self.cluster.restart_api_server()
                bucket.send_signal(signal.SIGSTOP)
                time.sleep(outage)
                bucket.send_signal(signal.SIGCONT)
        scheduler.kill()
        scheduler.wait()
        self.proxy.heal()
        self.proxy.cut_watches(None)

    def _delete_a_pod(self) -> None:
        alive = [pod for pod in pods_of(self.cluster, self.scene.namespace) if pod["status"]["phase"] == "Running"]
        if not alive:
            return
        path = f"/api/v1/namespaces/{self.scene.namespace}/pods/{self.random.choice(alive)['metadata']['name']}"
        try:
            self.cluster.request("DELETE", f"{path}?gracePeriodSeconds=1")
            self.deleted += 1
        except httpx2.HTTPStatusError:
            return  # it has just ended


@pytest.mark.parametrize(
    ("items", "seconds", "outage"),
    [(5, 25, 5), pytest.param(60, 300, 60, marks=pytest.mark.soak)],
)
def test_nothing_runs_twice_and_everything_ends_whatever_fails(
    items: int,
    seconds: float,
    outage: float,
    tmp_path: Path,
    cluster: Cluster,
    namespace: str,
    proxy: FaultProxy,
    plain_environment: dict[str, str],
) -> None:
    scene = Scene(tmp_path, cluster, namespace, plain_environment, new_bucket("gs"), proxy.kubeconfig)
    scene.write("work.py", WORK)
    flow = FLOW.replace("ITEMS", str(list(range(items)))).replace("IMAGE", cluster.images.busybox)
    scene.write("flow.yaml", flow.replace("LEDGER_PATH", str(scene.ledger)))
    scene.workers(scene.project_image(cluster.daemon, {"work.py": WORK}))
    run = scene.started("flow.yaml")
    chaos = Chaos(scene, cluster, proxy, items)
    chaos.rage(seconds, outage)
    with scene.scheduler():
        shown = scene.ended(run, 900)
    starts = scene.starts()
    assert len(starts) == len(set(starts))
    assert shown["status"] == "success", (scene.folder / "said.log").read_text()[-3000:]
    assert chaos.deleted > 0
    assert any(call.lost for call in proxy.calls)
    with scene.scheduler():  # removes what those that were killed left
        scene.leaves_nothing()
