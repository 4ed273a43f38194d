"""The life of one pod on the engine, with the statuses that a kubelet would write."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2

from tests.kubernetes import container_config, probes, volumes
from tests.kubernetes.api import ApiError, pod_path
from tests.kubernetes.container_runs import ContainerRun, ended_state, never_started, now
from tests.kubernetes.engine import EngineError

if TYPE_CHECKING:
    from tests.kubernetes.node import NodeAgent

Document = dict[str, Any]


class PodRunner:
    """`again`: a second start of the same pod, of which the API server hears nothing."""

    def __init__(self, node: NodeAgent, pod: Document, address: str, *, again: bool = False) -> None:
        self.pod = pod
        self.address = address
        self._node, self._again = node, again
        self._folder = Path(node.folder) / f"{pod['metadata']['uid']}{'-again' if again else ''}"
        spec = pod["spec"]
        self.init = [ContainerRun(each, is_init=True) for each in spec.get("initContainers") or []]
        self.main = [ContainerRun(each, is_init=False) for each in spec["containers"]]
        for run in [*self.init, *self.main]:
            run.state = {"waiting": {"reason": "PodInitializing" if self.init else "ContainerCreating"}}
        self._start_time = now()
        self._volumes: dict[str, Path] = {}
        self._processes: str | None = None  # the container whose processes all others see
        self._stop, self._deletion, self._gone = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._dirty = asyncio.Event()
        self._failure: Document = {}
        self._more_conditions: list[Document] = []
        self._ending = self._settled = False
        self._starting: set[asyncio.Task[None]] = set()
        self._background: set[asyncio.Task[None]] = set()
        self._conditions: dict[str, Document] = {}
        self._written: Document = {}
        self._writing = asyncio.Lock()

    # What the node tells it.

    def update(self, pod: Document) -> None:
        self.pod = pod
        if pod["metadata"].get("deletionTimestamp"):
            self._deletion.set()
            self._stop.set()

    def gone(self) -> None:
        """The object is no more."""
        for event in (self._gone, self._deletion, self._stop):
            event.set()

    def fail(self, reason: str, message: str, *conditions: Document) -> None:
        """End it for a reason of the node."""
        self._failure = {"reason": reason, "message": message}
        self._more_conditions += conditions
        self._stop.set()

    @property
    def is_finished(self) -> bool:
        return self._settled

    def container(self, name: str) -> ContainerRun | None:
        return next((run for run in [*self.init, *self.main] if run.name == name), None)

    async def run(self) -> None:
        """Until the object is deleted and nothing of it is left here."""
        writer = asyncio.create_task(self._write_statuses())
        self._dirty.set()
        try:
            await self._until_ended()
            self._settled = True
            self._node.pod_finished()
            await self._write()
            await self._deletion.wait()
        finally:
            writer.cancel()
            await self._clear()
        if not self._gone.is_set() and not self._again:
            await self._delete_object()

    async def _until_ended(self) -> None:
        work, stop = asyncio.create_task(self._work()), asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait(
                {work, stop}, timeout=self.pod["spec"].get("activeDeadlineSeconds"), return_when="FIRST_COMPLETED"
            )
        finally:
            stop.cancel()
        if work.done() and work.exception() is None:
            return
        if work.done():
            self._failure = {"reason": "NodeAgentError", "message": repr(work.exception())}
        elif not self._stop.is_set():
            message = "Pod was active on the node longer than the specified deadline"
            self._failure = {"reason": "DeadlineExceeded", "message": message}
        self._ending = True
        self._dirty.set()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await self._terminate()

    # Starting and ending containers.

    async def _work(self) -> None:
        policy = self.pod["spec"].get("restartPolicy", "Always")
        await self._prepare()
        for run in self.init:
            if run.is_sidecar:
                self._in_background(self._supervise(run, "Always"))
                await run.started.wait()
                continue
            await self._supervise(run, "Never" if policy == "Never" else "OnFailure")
            if run.exit_code != 0:
                await self._stop_sidecars()
                return
        for run in self.main:
            run.state = {"waiting": {"reason": "ContainerCreating"}}
        async with asyncio.TaskGroup() as group:
            for run in self.main:
                group.create_task(self._supervise(run, policy))
        await self._stop_sidecars()

    async def _prepare(self) -> None:
        while True:
            try:
                self._volumes = await volumes.prepare(self._node.api, self.pod, self._folder / "volumes")
                break
            except (volumes.NotYetError, ApiError) as error:
                await self._node.event(self.pod, "FailedMount", f"MountVolume.SetUp failed: {error}")
                await asyncio.sleep(self._node.backoff)
        if self.pod["spec"].get("shareProcessNamespace"):
            pause = {
                "Image": self._node.pause_image,
                "Labels": {container_config.POD_LABEL: self.pod["metadata"]["uid"]},
            }
            pause["Cmd"] = ["sh", "-c", "while :; do sleep 1; done"]
            self._processes = await self._node.engine.create(self._container_name("pause", 0), pause)
            await self._node.engine.start(self._processes)

    async def _supervise(self, run: ContainerRun, policy: str) -> None:
        """Start it, and start it again as the policy says."""
        while True:
            if await self._launch(run):
                watching = asyncio.create_task(self._probe(run))
                try:
                    await self._node.engine.wait(run.id)
                finally:
                    watching.cancel()
                await self._ended(run)
            if self._ending or policy == "Never" or (policy == "OnFailure" and run.exit_code == 0):
                run.is_over = True
                self._dirty.set()
                return
            wait = min(self._node.backoff * 2**run.restarts, 10 * self._node.backoff)
            message = f"back-off {wait:g}s restarting failed container={run.name} pod={self.pod['metadata']['name']}"
            run.last_state, run.previous_id = run.state, run.id
            run.state = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
            run.restarts += 1
            self._dirty.set()
            await asyncio.sleep(wait)

    async def _launch(self, run: ContainerRun) -> bool:
        """False if the engine could not start it: then it has ended."""
        image = await self._image(run)
        body = await self._body(run, image)
        starting = asyncio.create_task(self._start(run, body))
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)
        await asyncio.shield(starting)  # what is begun is finished, so that it can be stopped
        return run.is_running

    async def _start(self, run: ContainerRun, body: Document) -> None:
        async with self._node.starts:
            try:
                run.id = await self._node.engine.create(self._container_name(run.name, run.restarts), body)
                await self._node.engine.start(run.id)
            except EngineError as error:
                run.state = never_started(128, "StartError", str(error))
                self._dirty.set()
                return
        run.state = {"running": {"startedAt": now()}}
        self._dirty.set()

    async def _body(self, run: ContainerRun, image: Document) -> Document:
        """Waits until everything is there that the container refers to."""
        while True:
            try:
                pod = {**self.pod, "status": {**self.pod.get("status", {}), **self._addresses()}}
                env = await container_config.environment(self._node.api, pod, run.spec, self._node.environment)
                mounted = container_config.mounts(run.spec, self._volumes, env)
                note = self._note(run)
                note.parent.mkdir(parents=True, exist_ok=True)
                note.touch()
                note.chmod(0o666)
                target = run.spec.get("terminationMessagePath", "/dev/termination-log")
                mounted.append({"Type": "bind", "Source": str(note), "Target": target})
                return container_config.body(pod, run.spec, image, env, mounted, self._processes)
            except (volumes.NotYetError, container_config.RunsAsRootError, ApiError) as error:
                self._waits(run, "CreateContainerConfigError", str(error))
                await self._node.event(self.pod, "Failed", f"Error: {error}")
                await asyncio.sleep(self._node.backoff)

    async def _image(self, run: ContainerRun) -> Document:
        """Waits until the image is there."""
        name, policy, tries = run.spec["image"], run.spec.get("imagePullPolicy", "IfNotPresent"), 0
        while True:
            image = await self._node.engine.image(name)
            if image is None or policy == "Always":
                if policy == "Never":
                    self._waits(
                        run, "ErrImageNeverPull", f'Container image "{name}" is not present with pull policy of Never'
                    )
                else:
                    image = await self._pulled(run)
            if image is not None:
                digests = image.get("RepoDigests") or [f"docker://{image['Id']}"]
                run.image_id = digests[0]
                return image
            await asyncio.sleep(min(self._node.backoff * 2**tries, 10 * self._node.backoff))
            tries += 1

    async def _pulled(self, run: ContainerRun) -> Document | None:
        name = run.spec["image"]
        try:
            await self._node.engine.pull(name, await self._credentials(name))
            return await self._node.engine.image(name)
        except EngineError as error:
            problem = f'failed to pull and unpack image "{name}": {error}'
        self._waits(run, "ErrImagePull", problem)
        await self._node.event(self.pod, "Failed", f'Failed to pull image "{name}": {problem}')
        await asyncio.sleep(self._node.backoff)
        self._waits(run, "ImagePullBackOff", f'Back-off pulling image "{name}": ErrImagePull: {problem}')
        return None

    async def _credentials(self, image: str) -> Document | None:
        registry = image.partition("/")[0]
        for secret in self.pod["spec"].get("imagePullSecrets") or []:
            namespace = self.pod["metadata"]["namespace"]
            content = await volumes.content_of(self._node.api, namespace, "secrets", secret["name"], True)
            found = json.loads(content.get(".dockerconfigjson", b"{}")).get("auths", {}).get(registry)
            if found:
                user, _, password = base64.b64decode(found["auth"]).decode().partition(":")
                return {"username": user, "password": password, "serveraddress": registry}
        return None

    async def _probe(self, run: ContainerRun) -> None:
        """Follows the probes of a running container; a failed liveness probe ends it."""
        engine, http, spec = self._node.engine, self._node.http, run.spec
        hook = (spec.get("lifecycle") or {}).get("postStart", {})
        if "exec" in hook:
            with suppress(EngineError):
                await engine.execute(run.id, hook["exec"]["command"])
        startup = spec.get("startupProbe")
        if startup and not await probes.comes_up(engine, http, run, startup, self.address):
            await self._stop_container(run, self._grace)
            return
        run.started.set()
        run.is_ready = "readinessProbe" not in spec
        self._dirty.set()
        async with asyncio.TaskGroup() as group:
            if "readinessProbe" in spec:
                group.create_task(self._follow_readiness(run, spec["readinessProbe"]))
            if "livenessProbe" in spec:
                group.create_task(self._follow_liveness(run, spec["livenessProbe"]))

    async def _follow_readiness(self, run: ContainerRun, probe: Document) -> None:
        await asyncio.sleep(probe.get("initialDelaySeconds", 0))
        while True:
            await probes.until(self._node.engine, self._node.http, run, probe, self.address, not run.is_ready)
            run.is_ready = not run.is_ready
            self._dirty.set()
            await asyncio.sleep(probe.get("periodSeconds", 10))

    async def _follow_liveness(self, run: ContainerRun, probe: Document) -> None:
        await asyncio.sleep(probe.get("initialDelaySeconds", 0))
        await probes.until(self._node.engine, self._node.http, run, probe, self.address, False)
        await self._node.event(self.pod, "Unhealthy", f"Container {run.name} failed liveness probe, will be restarted")
        await self._stop_container(run, self._grace)

    async def _stop_container(self, run: ContainerRun, grace: float) -> None:
        if not run.is_running:
            return
        engine = self._node.engine
        hook = (run.spec.get("lifecycle") or {}).get("preStop", {})
        try:
            async with asyncio.timeout(max(grace, 0.01)):
                if grace > 0 and "exec" in hook:
                    await engine.execute(run.id, hook["exec"]["command"])
                if grace > 0 and "sleep" in hook:
                    await asyncio.sleep(hook["sleep"]["seconds"])
                await engine.kill(run.id, "SIGTERM")
                await engine.wait(run.id)
        except (TimeoutError, EngineError):
            await engine.kill(run.id, "SIGKILL")
            await engine.wait(run.id)
        await self._ended(run)

    async def _stop_sidecars(self) -> None:
        self._ending = True
        for run in reversed([run for run in self.init if run.is_sidecar]):
            await self._stop_container(run, self._grace)
        await self._end_background()

    async def _terminate(self) -> None:
        """Stop whatever runs: the containers together, then the sidecars, last one first."""
        await asyncio.gather(*self._starting, return_exceptions=True)
        await asyncio.gather(*(self._stop_container(run, self._grace) for run in self.main))
        for run in reversed(self.init):
            await self._stop_container(run, self._grace)
        await self._end_background()
        for run in [*self.init, *self.main]:
            if "waiting" in run.state:
                message = "The container could not be located when the pod was terminated"
                run.state = never_started(137, "ContainerStatusUnknown", message)
            run.is_over = True

    @property
    def _grace(self) -> float:
        if self._gone.is_set():
            return 0
        asked = self.pod["metadata"].get("deletionGracePeriodSeconds")
        return float(asked if asked is not None else self.pod["spec"].get("terminationGracePeriodSeconds", 30))

    async def _ended(self, run: ContainerRun) -> None:
        if not run.is_running:
            return
        try:
            inspected = await self._node.engine.inspect(run.id)
        except EngineError as error:  # somebody removed it
            run.state = never_started(137, "ContainerStatusUnknown", str(error))
        else:
            message = self._note(run).read_text(errors="replace")[:4096]
            if (
                not message
                and run.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError"
                and inspected["State"]["ExitCode"]
            ):
                lines = [part async for part in self._node.engine.logs(run.id, tail="80")]
                message = b"".join(lines).decode(errors="replace")[-2048:]
            run.state = ended_state(run, inspected, message)
        run.is_ready = False
        self._dirty.set()

    async def _clear(self) -> None:
        """Nothing of it is left on this machine."""
        await asyncio.gather(*self._starting, return_exceptions=True)
        await self._end_background()
        for run in [*self.init, *self.main]:
            for container in filter(None, (run.id, run.previous_id)):
                await self._node.engine.remove(container)
        if self._processes:
            await self._node.engine.remove(self._processes)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        self._background.add(asyncio.create_task(work))

    async def _end_background(self) -> None:
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        self._background.clear()

    def _container_name(self, name: str, restart: int) -> str:
        about = self.pod["metadata"]
        again = "_again" if self._again else ""
        return f"k8s_{name}_{about['name']}_{about['namespace']}_{about['uid']}_{restart}{again}"

    def _note(self, run: ContainerRun) -> Path:
        return self._folder / "notes" / f"{run.name}-{run.restarts}"

    # What the API server is shown.

    def _waits(self, run: ContainerRun, reason: str, message: str) -> None:
        run.state = {"waiting": {"reason": reason, "message": message}}
        self._dirty.set()

    def _addresses(self) -> Document:
        host = self._node.address
        return {"podIP": self.address, "podIPs": [{"ip": self.address}], "hostIP": host, "hostIPs": [{"ip": host}]}

    def _phase(self) -> str:
        if self._settled:
            failed = any(run.exit_code != 0 for run in self.main) or bool(self._failure)
            return "Failed" if failed else "Succeeded"
        if any(not self._is_initialized(run) for run in self.init):
            return "Pending"
        return "Pending" if any("waiting" in run.state and not run.last_state for run in self.main) else "Running"

    @staticmethod
    def _is_initialized(run: ContainerRun) -> bool:
        return run.started.is_set() if run.is_sidecar else run.exit_code == 0

    def status(self) -> Document:
        phase = self._phase()
        initialized = all(self._is_initialized(run) for run in self.init)
        ready = phase == "Running" and all(run.is_ready for run in self.main)
        why = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "ContainersNotReady")
        self._condition("PodReadyToStartContainers", not self._settled, "")
        self._condition("Initialized", initialized, "ContainersNotInitialized")
        self._condition("ContainersReady", ready, why)
        self._condition("Ready", ready, why)
        status = {
            "phase": phase,
            "startTime": self._start_time,
            **self._addresses(),
            "conditions": [*self._conditions.values(), *self._more_conditions],
            "containerStatuses": [run.status() for run in self.main],
            **self._failure,
        }
        if self.init:
            status["initContainerStatuses"] = [run.status() for run in self.init]
        return status

    def _condition(self, kind: str, holds: bool, reason: str) -> None:
        value = "True" if holds else "False"
        if self._conditions.get(kind, {}).get("status") != value:
            self._conditions[kind] = {"type": kind, "status": value, "lastTransitionTime": now()}
        self._conditions[kind]["reason"] = "" if holds else reason

    async def _write_statuses(self) -> None:
        while True:
            await self._dirty.wait()
            await self._write()

    async def _write(self) -> None:
        """Returns once the API server has what is known now, or the object is gone."""
        async with self._writing:
            while not self._again and not self._gone.is_set():
                await self._node.online.wait()
                self._dirty.clear()
                status = json.loads(json.dumps(self.status()))
                if status == self._written:
                    return
                try:
                    uid = {"uid": self.pod["metadata"]["uid"]}
                    await self._node.api.patch(pod_path(self.pod, "/status"), {"metadata": uid, "status": status})
                    self._written = status
                except (ApiError, httpx2.HTTPError) as error:
                    if isinstance(error, ApiError) and error.status in (404, 409):
                        return
                    await asyncio.sleep(0.2)

    async def _delete_object(self) -> None:
        uid = self.pod["metadata"]["uid"]
        while True:
            await self._node.online.wait()
            try:
                body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
                await self._node.api.delete(pod_path(self.pod), body)
                return
            except (ApiError, httpx2.HTTPError) as error:
                if isinstance(error, ApiError) and error.status in (404, 409):
                    return
                await asyncio.sleep(0.2)
