"""The cluster of the tests behaves as Kubernetes does where Ork depends on it."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.proxy import FaultProxy

pytestmark = pytest.mark.kubernetes
Document = dict[str, Any]


def pod(name: str, image: str, *script: str, **spec: Any) -> Document:
    main = {"name": "main", "image": image, "command": ["sh", "-c", "\n".join(script)], **spec.pop("main", {})}
    return {"metadata": {"name": name}, "spec": {"restartPolicy": "Never", "containers": [main], **spec}}


class Pods:
    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster, self.path = cluster, f"/api/v1/namespaces/{namespace}/pods"
        self.namespace = namespace

    def create(self, body: Document) -> None:
        self._cluster.request("POST", self.path, body)

    def get(self, name: str) -> Document:
        found: Document = self._cluster.request("GET", f"{self.path}/{name}")
        return found

    def until(self, name: str, holds: Callable[[Document], bool]) -> Document:
        for _ in range(1200):
            found = self.get(name)
            if holds(found):
                return found
            time.sleep(0.1)
        raise AssertionError(f"waited in vain: {found['status']}")

    def ended(self, name: str) -> Document:
        return self.until(name, lambda pod: pod["status"].get("phase") in ("Succeeded", "Failed"))["status"]

    def running(self, name: str) -> Document:
        return self.until(name, lambda pod: pod["status"].get("phase") == "Running")["status"]

    def log(self, name: str, **query: str) -> str:
        asked = "&".join(f"{key}={value}" for key, value in query.items())
        return str(self._cluster.request("GET", f"{self.path}/{name}/log?{asked}"))

    def delete(self, name: str, **options: Any) -> None:
        self._cluster.request("DELETE", f"{self.path}/{name}", options)

    def names(self) -> list[str]:
        return [each["metadata"]["name"] for each in self._cluster.request("GET", self.path)["items"]]


@pytest.fixture
def pods(cluster: Cluster, namespace: str) -> Pods:
    return Pods(cluster, namespace)


def terminated(status: Document, container: int = 0) -> Document:
    found: Document = status["containerStatuses"][container]["state"]["terminated"]
    return found


def test_init_container_sidecar_files_and_secrets(cluster: Cluster, pods: Pods) -> None:
    """What Ork does with a plain image: write the input before, upload the output after, references to Secrets."""
    image = cluster.images.busybox
    cluster.request(
        "POST", f"/api/v1/namespaces/{pods.namespace}/secrets", {"metadata": {"name": "s"}, "stringData": {"k": "open"}}
    )
    shared = {"name": "shared", "mountPath": "/shared"}
    init = {
        "name": "before",
        "image": image,
        "command": ["sh", "-c", "echo 42 > /shared/in.txt"],
        "volumeMounts": [shared],
    }
    wait = "trap 'cp /shared/out.txt /dev/termination-log; exit 0' TERM; while :; do sleep 0.1; done"
    sidecar = {
        "name": "beside",
        "image": image,
        "restartPolicy": "Always",
        "command": ["sh", "-c", wait],
        "volumeMounts": [shared],
    }
    main = {
        "volumeMounts": [
            {"name": "shared", "mountPath": "/data/in.txt", "subPath": "in.txt", "readOnly": True},
            {"name": "shared", "mountPath": "/out"},
        ],
        "env": [
            {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            {"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "BOTH", "value": "$(WHO)-$(WORD)"},
        ],
    }
    volumes = [{"name": "shared", "emptyDir": {}}]
    script = 'read n < /data/in.txt; echo "$BOTH $((n + 1))" | tee /out/out.txt'
    pods.create(pod("files", image, script, main=main, volumes=volumes, initContainers=[init, sidecar]))
    status = pods.ended("files")
    assert status["phase"] == "Succeeded"
    assert terminated(status)["reason"] == "Completed"
    first, second = status["initContainerStatuses"]
    assert first["state"]["terminated"]["exitCode"] == 0
    assert second["state"]["terminated"]["message"] == "files-open 43\n"
    assert pods.log("files", container="main") == "files-open 43\n"
    pods.delete("files")
    assert pods.names() == []


def test_every_way_to_end_has_its_status(cluster: Cluster, pods: Pods) -> None:
    image = cluster.images.busybox
    memory = {"resources": {"limits": {"memory": "16Mi"}, "requests": {"memory": "1Mi"}}}
    pods.create(pod("code", image, "echo no >&2; exit 3"))
    pods.create(pod("oom", image, "a=xxxxxxxxxxxxxxxx; while :; do a=$a$a; done", main=memory))
    pods.create(pod("late", image, "sleep 1000", activeDeadlineSeconds=1, terminationGracePeriodSeconds=1))
    pods.create(pod("missing", image, "true", main={"command": ["/no/such/program"]}))
    pods.create(pod("pull", "127.0.0.1:1/nothing:1", "true"))
    pods.create(pod("big", image, "true", main={"resources": {"requests": {"cpu": "1000"}}}))
    pods.create(pod("evicted", image, "sleep 1000", terminationGracePeriodSeconds=1))
    assert terminated(pods.ended("code"))["exitCode"] == 3
    assert pods.log("code") == "no\n"
    assert terminated(pods.ended("oom"))["reason"] == "OOMKilled"
    assert pods.ended("late")["reason"] == "DeadlineExceeded"
    assert terminated(pods.ended("missing"))["reason"] == "StartError"
    waits = pods.until(
        "pull", lambda pod: "ErrImagePull" in str(pod["status"]) or "ImagePullBackOff" in str(pod["status"])
    )
    assert "127.0.0.1:1/nothing:1" in waits["status"]["containerStatuses"][0]["state"]["waiting"]["message"]
    unfit = pods.until("big", lambda pod: "Unschedulable" in str(pod["status"]))
    assert "1 Insufficient cpu" in str(unfit["status"]["conditions"])
    pods.running("evicted")
    cluster.node.evict(pods.namespace, "evicted")
    status = pods.ended("evicted")
    assert status["reason"] == "Evicted"
    assert any(each["type"] == "DisruptionTarget" for each in status["conditions"])


def test_deletion_waits_for_the_grace_period_and_leaves_nothing(cluster: Cluster, pods: Pods) -> None:
    pods.create(pod("polite", cluster.images.busybox, "trap 'exit 0' TERM; while :; do sleep 0.1; done"))
    pods.create(pod("deaf", cluster.images.busybox, "trap '' TERM; while :; do sleep 0.1; done"))
    pods.running("polite")
    pods.running("deaf")
    pods.delete("polite", gracePeriodSeconds=600)
    pods.delete("deaf", gracePeriodSeconds=1)
    for _ in range(1200):
        if pods.names() == [] and cluster.node.containers() == 0:
            break
        time.sleep(0.1)
    assert pods.names() == []
    assert cluster.node.containers() == 0


def test_indexed_job_says_which_indexes_failed(cluster: Cluster, namespace: str) -> None:
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    template = {"spec": pod("", cluster.images.busybox, "[ $JOB_COMPLETION_INDEX != 1 ]")["spec"]}
    spec = {
        "completions": 3,
        "parallelism": 3,
        "completionMode": "Indexed",
        "backoffLimitPerIndex": 0,
        "template": template,
    }
    cluster.request("POST", path, {"metadata": {"name": "three"}, "spec": spec})
    for _ in range(1200):
        status = cluster.request("GET", f"{path}/three")["status"]
        if any(each["type"] == "Failed" for each in status.get("conditions") or []):
            break
        time.sleep(0.1)
    assert (status["completedIndexes"], status["failedIndexes"]) == ("0,2", "1")


def test_lost_node_is_tainted_and_its_pods_are_deleted(cluster: Cluster, pods: Pods) -> None:
    pods.create(pod("there", cluster.images.busybox, "sleep 1000", terminationGracePeriodSeconds=1))
    pods.running("there")
    cluster.node.lose()
    try:
        pods.until("there", lambda pod: "deletionTimestamp" in pod["metadata"])
    finally:
        cluster.node.come_back()
    for _ in range(1200):
        if pods.names() == []:
            break
        time.sleep(0.1)
    assert pods.names() == []
    pods.create(pod("next", cluster.images.busybox, "true"))
    assert pods.ended("next")["phase"] == "Succeeded"


def test_faults_of_the_proxy(cluster: Cluster, proxy: FaultProxy, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    headers = {"Authorization": f"Bearer {cluster.token}"}
    with httpx2.Client(
        base_url=proxy.url, verify=ssl.create_default_context(cafile=str(cluster.ca)), headers=headers, trust_env=False
    ) as client:
        proxy.refuse(429, retry_after=1)
        refused = client.get(path)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        proxy.lose_answers()
        with pytest.raises(httpx2.HTTPError):
            client.post(path, json={"metadata": {"name": "lost"}})
        proxy.heal()
        assert client.get(f"{path}/lost").status_code == 200  # it was executed
        with client.stream("GET", path, params={"watch": "1"}) as watch:
            lines = watch.iter_lines()
            assert "ADDED" in next(lines)
            proxy.cut_watches_now()
            with pytest.raises(httpx2.HTTPError):
                list(lines)
        proxy.expire_watches()
        assert client.get(path, params={"watch": "1"}).json()["object"]["code"] == 410
        cluster.restart_api_server()
        assert client.get(f"{path}/lost").status_code == 200
    assert [call.lost for call in proxy.calls if call.method == "POST"] == [True]
