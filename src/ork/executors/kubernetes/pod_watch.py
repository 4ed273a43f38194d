"""All pods of an installation in one namespace, kept current by one watch.

The watch begins with a list, goes on from its version, and after a lost connection from the last version it has seen. If that is too
old (410) it begins anew. It runs only while somebody needs it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable

from ork.errors import AnswerLostError, EngineError
from ork.executors.kubernetes.api import EXPIRED, ClusterApi
from ork.executors.kubernetes.pods import PodSeen, gone

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.2, 10.0
# Without a connection for longer, what was seen last says nothing about now.
CURRENT_SECONDS = 30.0
# A change of pods that is received calls back at once.
OnChange = Callable[[PodSeen, PodSeen | None], None]


class PodWatch:
    """`on_change` is called with each pod that changed, and what was known of it before. A removed pod is `is_gone`; it is forgotten
    by the watch, and whoever still needs it keeps it."""

    def __init__(self, api: ClusterApi, labels: dict[str, str], on_change: OnChange) -> None:
        self._api = api
        self._labels = labels
        self._on_change = on_change
        self._pods: dict[str, PodSeen] = {}
        self._by_job: dict[str, set[str]] = {}
        self._version: str | None = None
        self._task: asyncio.Task[None] | None = None
        self._listed = asyncio.Event()
        self._answered_at = float("-inf")
        self._is_connected = False
        self.problem: EngineError | None = None  # why there is no connection
        self.lists = 0

    def start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._run())

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    async def ready(self, seconds: float) -> bool:
        """True when all pods are known. False if the platform does not answer in time."""
        self.start()
        try:
            async with asyncio.timeout(seconds):
                await self._listed.wait()
        except TimeoutError:
            return False
        return True

    @property
    def is_current(self) -> bool:
        """False if nothing was heard of the platform for a while: what is known may be old."""
        return self._listed.is_set() and (self._is_connected or time.monotonic() - self._answered_at < CURRENT_SECONDS)

    def pods_of(self, job: str) -> list[PodSeen]:
        return [self._pods[name] for name in self._by_job.get(job, ())]

    def __len__(self) -> int:
        return len(self._pods)

    async def stop(self) -> None:
        """Forget everything. `start` begins anew."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._pods.clear()
        self._by_job.clear()
        self._version, self._is_connected = None, False
        self._listed.clear()

    # ── following ────────────────────────────────────────────────────────────────────────────────

    async def _run(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                if self._version is None:
                    await self._list()
                    pause = FIRST_PAUSE_SECONDS
                await self._follow()
            except EngineError as error:
                self._is_connected, self.problem = False, error
                if error.status == EXPIRED:
                    self._version = None
                    continue
                if isinstance(error, AnswerLostError):  # there was a connection
                    pause = FIRST_PAUSE_SECONDS
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _list(self) -> None:
        listed = await self._api.pods(self._labels)
        self.lists += 1
        self._answered()
        for name in self._pods.keys() - {pod.name for pod in listed.pods}:
            self._remove(self._pods[name])
        self._note_all(listed.pods)
        self._version = listed.version
        self._listed.set()

    async def _follow(self) -> None:
        assert self._version is not None
        self._is_connected = True  # unless the platform refuses, which is an error
        async for kind, pod, version in self._api.watch_pods(self._labels, self._version):
            self._answered()
            self._version = version
            if pod is None or kind == "BOOKMARK":
                continue
            if kind == "DELETED":
                self._remove(pod)
            else:
                self._note(pod)

    def _answered(self) -> None:
        self._answered_at, self.problem = time.monotonic(), None

    def _note_all(self, pods: Iterable[PodSeen]) -> None:
        for pod in pods:
            self._note(pod)

    def _note(self, pod: PodSeen) -> None:
        before = self._pods.get(pod.name)
        if before == pod:
            return
        self._pods[pod.name] = pod
        self._by_job.setdefault(pod.job, set()).add(pod.name)
        self._on_change(pod, before)

    def _remove(self, pod: PodSeen) -> None:
        before = self._pods.pop(pod.name, None)
        names = self._by_job.get(pod.job)
        if names is not None:
            names.discard(pod.name)
            if not names:
                del self._by_job[pod.job]
        self._on_change(gone(pod), before)
