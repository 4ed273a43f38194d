"""A node that only pretends: it reports pods as running, or as ended, and runs nothing. In a process of its own, so that its
work is not counted."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from datetime import UTC, datetime
from typing import Any

import httpx2
from tests.kubernetes.api import Api, ApiError, pod_path

SCHEDULER = "pretend"  # `schedulerName` of the pods that it takes
AT_ONCE = 24
Document = dict[str, Any]


class PretendNode:
    """`ends`: pods end at once. `touch` changes each pod once more; `started` waits until a Job has so many running pods."""

    def __init__(self, url: str, token: str, ca: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._reports = context.Queue()
        self._orders = context.Queue()
        self._process = context.Process(
            target=_main, args=(url, token, ca, self._orders, self._reports), name="pretend-node", daemon=True
        )
        self._process.start()
        self._counts: dict[str, int] = {}
        self._order("hold")

    def hold(self) -> None:
        self._order("hold")

    def ends(self) -> None:
        self._order("end")

    def touch(self) -> int:
        """The number of pods that were changed."""
        return int(self._order("touch"))

    def started(self, job: str, count: int, seconds: float = 600) -> float:
        """When the last of so many pods was reported as running, by the monotonic clock."""
        at, end = 0.0, time.monotonic() + seconds
        while self._counts.get(job, 0) < count:
            name, at = self._reports.get(timeout=max(0.1, end - time.monotonic()))
            self._counts[name] = self._counts.get(name, 0) + 1
        return at

    def close(self) -> None:
        self._process.kill()
        self._process.join()

    def _order(self, word: str) -> Any:
        self._orders.put(word)
        while True:
            name, value = self._reports.get(timeout=600)
            if name == f"!{word}":
                return value
            self._counts[name] = self._counts.get(name, 0) + 1


def _main(url: str, token: str, ca: str, orders: Any, reports: Any) -> None:
    asyncio.run(_Node(Api(url, token, ca), orders, reports).run())


class _Node:
    def __init__(self, api: Api, orders: Any, reports: Any) -> None:
        self._api, self._orders, self._reports = api, orders, reports
        self._pods: dict[str, Document] = {}
        self._begun: set[str] = set()
        self._is_ending = False
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        self._spawn(self._obey())
        async for event, pod in self._api.follow("/api/v1/pods", fieldSelector=f"spec.schedulerName={SCHEDULER}"):
            uid = pod["metadata"]["uid"]
            if event == "DELETED":
                self._pods.pop(uid, None)
                self._begun.discard(uid)
                continue
            self._pods[uid] = pod
            if pod["metadata"].get("deletionTimestamp"):
                self._spawn(self._remove(pod))
            elif uid not in self._begun:
                self._begun.add(uid)
                self._spawn(self._start(pod))

    async def _obey(self) -> None:
        while True:
            word = await asyncio.to_thread(self._orders.get)
            value: Any = None
            if word == "touch":
                pods = list(self._pods.values())
                await asyncio.gather(*(self._report(pod, _running(f"Touched {time.time()}")) for pod in pods))
                value = len(pods)
            else:
                self._is_ending = word == "end"
            self._reports.put((f"!{word}", value))

    async def _start(self, pod: Document) -> None:
        await self._report(pod, _running("Started"))
        self._reports.put((pod["metadata"]["labels"]["batch.kubernetes.io/job-name"], time.monotonic()))
        if self._is_ending:
            await self._report(pod, _ended())

    async def _remove(self, pod: Document) -> None:
        async with self._slots:
            try:
                await self._api.delete(pod_path(pod), {"gracePeriodSeconds": 0})
            except (ApiError, httpx2.HTTPError):
                return

    async def _report(self, pod: Document, status: Document) -> None:
        async with self._slots:
            try:
                await self._api.patch(pod_path(pod, "/status"), {"status": status})
            except (ApiError, httpx2.HTTPError):
                return  # it was deleted meanwhile

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _status(phase: str, state: Document, reason: str) -> Document:
    container = {"name": "main", "image": "none", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    condition = {"type": "Ready", "status": "False", "reason": "Pretended", "message": reason}
    return {"phase": phase, "startTime": _now(), "containerStatuses": [container], "conditions": [condition]}


def _running(reason: str) -> Document:
    return _status("Running", {"running": {"startedAt": _now()}}, reason)


def _ended() -> Document:
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": _now(), "finishedAt": _now()}
    return _status("Succeeded", {"terminated": ended}, "Ended")
