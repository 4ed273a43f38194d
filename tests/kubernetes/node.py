"""A node of the cluster: binds pods to itself and runs them on a container engine, as scheduler and kubelet would.

It lives in a thread of its own. Its switches can be used from any other thread, and have taken effect when they return.
All pods share the network of this machine; each has an address of its own there.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from tests.kubernetes.api import Api, ApiError, pod_path
from tests.kubernetes.container_config import POD_LABEL
from tests.kubernetes.container_runs import now
from tests.kubernetes.engine import Engine
from tests.kubernetes.kubelet_api import KubeletApi
from tests.kubernetes.pods import PodRunner
from tests.kubernetes.scheduling import problem

Document = dict[str, Any]
Match = Callable[[Document], bool]
T = TypeVar("T")
_log = logging.getLogger(__name__)

# No test and no machine needs as much; only the number of starts at a time is limited by what there is.
CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "2000", "ephemeral-storage": "100Gi"}
ADDRESS = "127.0.0.1"
SPARE = "node-spare"
_READY = ("KubeletReady", "kubelet is posting ready status")


def everything(pod: Document) -> bool:
    return True


class NodeAgent:
    def __init__(
        self,
        *,
        name: str,
        url: str,
        token: str,
        ca: Path,
        certificate: tuple[Path, Path],
        engine_url: str,
        folder: Path,
        addresses: Iterator[str],
        pause_image: str,
    ) -> None:
        self.name, self.folder, self.address, self.pause_image = name, folder, ADDRESS, pause_image
        self.backoff = 0.5  # seconds until what failed is tried again; doubles up to ten times that
        host, port = url.removeprefix("https://").split(":")
        self.environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        self._url, self._token, self._ca, self._engine_url = url, token, str(ca), engine_url
        self._certificate, self._addresses = certificate, addresses
        self._pods: dict[str, Document] = {}  # by uid, as last seen
        self._runners: dict[str, PodRunner] = {}
        self._others: dict[str, list[PodRunner]] = {}  # second starts, by the uid of the pod
        self._tasks: set[asyncio.Task[None]] = set()
        self._holds: list[tuple[Match, str]] = []
        self._start_twice: Match | None = None
        self._node: Document = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run_loop, name="node-agent", daemon=True)

    # Switches.

    def hold(self, match: Match = everything, message: str = "0/1 nodes are available: 1 Insufficient cpu.") -> None:
        """Pods that match and are not bound yet stay unschedulable, with this message, until `release`."""
        self._call(self._hold(match, message))

    def release(self) -> None:
        self._call(self._release())

    def start_twice(self, match: Match | None = everything) -> None:
        """From now on pods that match are started a second time, at the same time; None ends that."""
        self._start_twice = match

    def evict(self, namespace: str, name: str, message: str = "The node was low on resource: memory.") -> None:
        """As a kubelet does under pressure: the pod fails with reason Evicted and stays as an object."""
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": message}
        self._call(self._fail(namespace, name, "Evicted", message, condition))

    def preempt(self, namespace: str, name: str) -> None:
        """As the scheduler does for a pod of a higher priority: the pod is marked and deleted."""
        self._call(self._preempt(namespace, name))

    def lose(self, *, kill: bool = False) -> None:
        """The node is unreachable. Its containers go on, or end now with `kill`, and nobody hears of it."""
        self._call(self._lose(kill))

    def come_back(self) -> None:
        """Reports what happened meanwhile, and clears away what was deleted meanwhile."""
        self._call(self._come_back())

    def remove_object(self) -> None:
        """Deletes the Node, as clouds do with a machine that is gone. Its pods are collected 40 s later."""
        self._call(self._lose(kill=True))
        self._call(self.api.delete(f"/api/v1/nodes/{self.name}"))

    def set_capacity(self, **amounts: str) -> None:
        """`set_capacity(pods="3")`; other resources by their full name: `**{"nvidia.com/gpu": "1"}`."""
        self._call(self._set_capacity(amounts))

    def execute(self, namespace: str, pod: str, container: str, *argv: str) -> tuple[int, str]:
        """Runs a command in a container, in place of `kubectl exec`."""
        return self._call(self._execute(namespace, pod, container, list(argv)))

    def containers(self) -> int:
        """How many containers of pods there are on the engine."""
        return len(self._call(self.engine.labelled(POD_LABEL)))

    # Life.

    def start(self) -> None:
        self._thread.start()
        self._call(self._begin())

    def stop(self) -> None:
        """Ends without a word to the API server; containers are removed."""
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(120)

    async def _begin(self) -> None:
        self.api = Api(self._url, self._token, self._ca)
        self.engine = Engine(self._engine_url)
        self.http = httpx2.AsyncClient(verify=False, trust_env=False)
        self.online = asyncio.Event()
        self.online.set()
        self.starts = asyncio.Semaphore(max(2, os.cpu_count() or 2))
        self._changed = asyncio.Event()
        self._kubelet = KubeletApi(self._find_container, self.engine, self._certificate)
        port = await self._kubelet.start()
        await self._register(port)
        await self._add_spare()
        for work in (self._follow_node(), self._follow_pods(), self._schedule_pods(), self._renew()):
            self._keep(work)

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for container in await self.engine.labelled(POD_LABEL):
            await self.engine.remove(container)
        await self._kubelet.close()
        for each in (self.api, self.engine):
            await each.close()
        await self.http.aclose()

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("node agent", exc_info=task.exception())

    async def _register(self, port: int) -> None:
        labels = {"kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": labels}}
        try:
            self._node = await self.api.post("/api/v1/nodes", node)
        except ApiError as error:
            if error.status != 409:
                raise
            self._node = await self.api.get(f"/api/v1/nodes/{self.name}")
        status = {
            "capacity": CAPACITY,
            "allocatable": CAPACITY,
            "addresses": [
                {"type": "InternalIP", "address": self.address},
                {"type": "Hostname", "address": self.name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "nodeInfo": _NODE_INFO,
        }
        self._node = await self.api.patch(f"/api/v1/nodes/{self.name}/status", {"status": status})
        self._node = await self._set_ready(self.name, "True", *_READY)

    async def _add_spare(self) -> None:
        """A second node, which gets no pods. Where all nodes are lost, the controller manager takes the fault for its own and deletes nothing."""
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": SPARE}, "spec": {"unschedulable": True}}
        await self.api.post("/api/v1/nodes", node)
        await self._set_ready(SPARE, "True", *_READY)

    async def _set_ready(self, node: str, value: str, reason: str, message: str) -> Document:
        moment = now()
        condition = {
            "type": "Ready",
            "status": value,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": moment,
            "lastTransitionTime": moment,
        }
        return await self.api.patch(f"/api/v1/nodes/{node}/status", {"status": {"conditions": [condition]}})

    async def _renew(self) -> None:
        """The leases that say that the nodes are alive."""
        while True:
            try:
                await self._renew_lease(SPARE)
                if self.online.is_set():
                    await self._renew_lease(self.name)
            except (ApiError, httpx2.HTTPError):
                await asyncio.sleep(1)
                continue
            await asyncio.sleep(10)

    async def _renew_lease(self, node: str) -> None:
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        spec = {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": now().replace("Z", ".000000Z")}
        try:
            await self.api.patch(f"{path}/{node}", {"spec": spec})
        except ApiError as error:
            if error.status != 404:
                raise
            lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": node}}
            await self.api.post(path, {**lease, "spec": spec})

    async def _follow_node(self) -> None:
        """The controller manager taints and untaints it."""
        async for _, node in self.api.follow("/api/v1/nodes", fieldSelector=f"metadata.name={self.name}"):
            self._node = node
            self._changed.set()

    # Pods.

    async def _follow_pods(self) -> None:
        async for event, pod in self.api.follow("/api/v1/pods"):
            uid = pod["metadata"]["uid"]
            if event == "DELETED":
                self._pods.pop(uid, None)
            else:
                self._pods[uid] = pod
            self._changed.set()
            if pod["spec"].get("nodeName") == self.name and self.online.is_set():
                self._notice(pod, is_gone=event == "DELETED")

    def _notice(self, pod: Document, *, is_gone: bool) -> None:
        """A pod of this node is new, changed or gone."""
        uid = pod["metadata"]["uid"]
        runner = self._runners.get(uid)
        if runner is None:
            if is_gone or pod["status"].get("phase") in ("Succeeded", "Failed"):
                return
            runner = self._begin_pod(pod)
        for each in [runner, *self._others.get(uid, [])]:
            if is_gone:
                each.gone()
            else:
                each.update(pod)

    def _begin_pod(self, pod: Document) -> PodRunner:
        uid = pod["metadata"]["uid"]
        runner = self._runners[uid] = PodRunner(self, pod, next(self._addresses))
        self._keep(self._run_pod(uid, runner))
        if self._start_twice is not None and self._start_twice(pod):
            other = PodRunner(self, pod, next(self._addresses), again=True)
            self._others[uid] = [other]
            self._keep(other.run())
        return runner

    async def _run_pod(self, uid: str, runner: PodRunner) -> None:
        try:
            await runner.run()
        finally:
            self._runners.pop(uid, None)
            for other in self._others.pop(uid, []):
                other.gone()

    def pod_finished(self) -> None:
        self._changed.set()

    async def _schedule_pods(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            waiting = [pod for pod in self._pods.values() if self._is_waiting(pod)]
            for pod in sorted(waiting, key=lambda pod: str(pod["metadata"]["creationTimestamp"])):
                await self.online.wait()
                try:
                    await self._schedule(pod)
                except (ApiError, httpx2.HTTPError):
                    self._loop.call_later(0.2, self._changed.set)

    @staticmethod
    def _is_waiting(pod: Document) -> bool:
        return not (
            pod["spec"].get("nodeName")
            or pod["metadata"].get("deletionTimestamp")
            or pod["spec"].get("schedulingGates")
            or pod["spec"].get("schedulerName", "default-scheduler") != "default-scheduler"
            or pod["status"].get("phase") in ("Succeeded", "Failed")
        )

    async def _schedule(self, pod: Document) -> None:
        held = next((message for match, message in self._holds if match(pod)), None)
        reason = held or problem(pod, self._node, self._bound())
        uid = pod["metadata"]["uid"]
        if reason is None:
            target = {"kind": "Node", "apiVersion": "v1", "name": self.name}
            about = {"name": pod["metadata"]["name"], "uid": uid}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": about, "target": target}
            try:
                await self.api.post(pod_path(pod, "/binding"), binding)
            except ApiError as error:
                if error.status not in (404, 409):
                    raise
                return
            pod["spec"]["nodeName"] = self.name  # the watch says so later
            return
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": reason}
        known = next((each for each in pod["status"].get("conditions") or [] if each["type"] == "PodScheduled"), {})
        if known.get("message") == reason:
            return
        body = {"metadata": {"uid": uid}, "status": {"phase": "Pending", "conditions": [condition]}}
        try:
            self._pods[uid] = await self.api.patch(pod_path(pod, "/status"), body)
        except ApiError as error:
            if error.status not in (404, 409):
                raise
        await self.event(pod, "FailedScheduling", reason)

    def _bound(self) -> list[Document]:
        found = []
        for uid, pod in self._pods.items():
            runner = self._runners.get(uid)
            ended = pod["status"].get("phase") in ("Succeeded", "Failed") or (runner is not None and runner.is_finished)
            if pod["spec"].get("nodeName") == self.name and not ended:
                found.append(pod)
        return found

    async def event(self, pod: Document, reason: str, message: str) -> None:
        about = pod["metadata"]
        moment = now()
        body = {
            "metadata": {"generateName": f"{about['name'][:50]}.", "namespace": about["namespace"]},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": about["name"],
                "namespace": about["namespace"],
                "uid": about["uid"],
            },
            "type": "Warning",
            "reason": reason,
            "message": message[:1000],
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
            "source": {"component": "kubelet", "host": self.name},
        }
        try:
            await self.api.post(f"/api/v1/namespaces/{about['namespace']}/events", body)
        except (ApiError, httpx2.HTTPError):
            _log.info("no event for %s", about["name"])

    def _find(self, namespace: str, name: str) -> PodRunner | None:
        for runner in self._runners.values():
            about = runner.pod["metadata"]
            if (about["namespace"], about["name"]) == (namespace, name):
                return runner
        return None

    def _find_container(self, namespace: str, pod: str, container: str) -> Any:
        runner = self._find(namespace, pod)
        return runner.container(container) if runner else None

    # What the switches do, in the agent's own thread.

    async def _hold(self, match: Match, message: str) -> None:
        self._holds.append((match, message))
        self._changed.set()

    async def _release(self) -> None:
        self._holds.clear()
        self._changed.set()

    async def _fail(self, namespace: str, name: str, reason: str, message: str, condition: Document) -> None:
        runner = self._find(namespace, name)
        if runner is None:
            raise LookupError(f"no pod {namespace}/{name} runs here")
        runner.fail(reason, message, {**condition, "lastTransitionTime": now()})

    async def _preempt(self, namespace: str, name: str) -> None:
        message = "default-scheduler: preempting to accommodate a higher priority pod"
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": message,
        }
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        await self.api.patch(f"{path}/status", {"status": {"conditions": [{**condition, "lastTransitionTime": now()}]}})
        await self.api.delete(path)

    async def _lose(self, kill: bool) -> None:
        """The controller manager would say Unknown after a minute of silence; the test need not wait for that."""
        self.online.clear()
        words = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
        self._node = await self._set_ready(self.name, "Unknown", *words)
        if kill:
            for container in await self.engine.labelled(POD_LABEL):
                await self.engine.kill(container, "SIGKILL")

    async def _come_back(self) -> None:
        await self._register(self._kubelet.port)
        self.online.set()
        for uid, runner in list(self._runners.items()):
            pod = self._pods.get(uid)
            self._notice(pod or runner.pod, is_gone=pod is None)
        for pod in list(self._pods.values()):
            if pod["spec"].get("nodeName") == self.name:
                self._notice(pod, is_gone=False)
        self._changed.set()

    async def _set_capacity(self, amounts: dict[str, str]) -> None:
        status = {"capacity": amounts, "allocatable": amounts}
        self._node = await self.api.patch(f"/api/v1/nodes/{self.name}/status", {"status": status})
        self._changed.set()

    async def _execute(self, namespace: str, pod: str, container: str, argv: list[str]) -> tuple[int, str]:
        run = self._find_container(namespace, pod, container)
        if run is None or not run.is_running:
            raise LookupError(f"no container {container} runs in {namespace}/{pod}")
        return await self.engine.execute(run.id, argv)


def addresses(network: str) -> Iterator[str]:
    """`addresses("198.18.4")`: the hosts of a network of 256, for ever."""
    return (f"{network}.{number}" for number in itertools.cycle(range(2, 255)))


_NODE_INFO = {
    "machineID": "ork-test",
    "systemUUID": "ork-test",
    "bootID": "ork-test",
    "kernelVersion": os.uname().release,
    "osImage": "test",
    "containerRuntimeVersion": "docker://0",
    "kubeletVersion": "v1.34.0",
    "kubeProxyVersion": "",
    "operatingSystem": "linux",
    "architecture": "amd64",
}
