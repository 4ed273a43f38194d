"""A strict API server in memory, below lightkube's HTTP client: real JSON, versions, watches, and faults on demand.

It knows exactly the requests that Ork makes; any other fails the test. There is no Job controller: tests say what pods do.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2

JOBS, PODS = "/apis/batch/v1/namespaces/ns/jobs", "/api/v1/namespaces/ns/pods"
EVENTS, REVIEWS = "/api/v1/namespaces/ns/events", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
Document = dict[str, Any]
# Returns an answer in place of the server's, or raises; None lets the request through.
Fault = Callable[[str, str], httpx2.Response | None]


class ScriptedCluster(httpx2.AsyncBaseTransport):
    def __init__(self) -> None:
        self.version = 100
        self.jobs: dict[str, Document] = {}
        self.pods: dict[str, Document] = {}
        self.logs: dict[str, str] = {}
        self.events: list[Document] = []
        self.denied: set[tuple[str, str]] = set()
        self.requests: list[tuple[str, str]] = []
        self.deleted: list[tuple[str, Document]] = []
        self.faults: list[Fault] = []
        self.history: list[tuple[int, str, Document]] = []  # of pods
        self.oldest = 0  # versions before it are compacted
        self._watchers: set[asyncio.Queue[bytes | None]] = set()
        self._number = 0

    # ── what tests do ────────────────────────────────────────────────────────────────────────────

    def pod(self, job: str, index: int | None = None, **status: Any) -> str:
        """The Job controller creates a pod, or its status changes. Returns its name."""
        name = f"{job}-{index or 0}-abcde"
        labels = {**self.jobs[job]["spec"]["template"]["metadata"]["labels"], "batch.kubernetes.io/job-name": job}
        if index is not None:
            labels["batch.kubernetes.io/job-completion-index"] = str(index)
        meta: Document = {"name": name, "namespace": "ns", "labels": labels}
        if "deletionTimestamp" in status:
            meta["deletionTimestamp"] = status.pop("deletionTimestamp")
        before = self.pods.get(name)
        status.setdefault("phase", "Pending")
        made = {"metadata": meta, "spec": {"containers": [], "nodeName": "node-1"}, "status": status}
        self._change("ADDED" if before is None else "MODIFIED", made)
        return name

    def remove_pod(self, name: str) -> None:
        self._change("DELETED", self.pods[name])

    def end_job(self, job: str, type: str = "Failed", reason: str = "BackoffLimitExceeded", message: str = "") -> None:
        self.jobs[job]["status"] = {
            "conditions": [{"type": type, "status": "True", "reason": reason, "message": message}]
        }

    def now(self) -> str:
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def cut_watches(self) -> None:
        for watcher in self._watchers:
            watcher.put_nowait(None)

    def count(self, method: str, path: str = "") -> int:
        return sum(each == method and path in url for each, url in self.requests)

    # ── what the API server does ─────────────────────────────────────────────────────────────────

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = urlsplit(str(request.url))
        query = dict(parse_qsl(url.query))
        self.requests.append((request.method, url.path + ("?watch" if "watch" in query else "")))
        for fault in list(self.faults):
            answer = fault(request.method, url.path)
            if answer is not None:
                return answer
        body = json.loads(await request.aread() or b"null")
        return self._answer(request.method, url.path, query, body)

    def _answer(self, method: str, path: str, query: dict[str, str], body: Any) -> httpx2.Response:
        collection, _, rest = path.partition("ns/")[0], "", path.partition("ns/")[2]
        name = "/".join(rest.split("/")[1:])
        if path == REVIEWS:
            asked = body["spec"]["resourceAttributes"]
            resource = f"{asked['resource']}/{asked['subresource']}" if asked.get("subresource") else asked["resource"]
            allowed = (asked["verb"], resource) not in self.denied
            return _ok({**body, "status": {"allowed": allowed}}, 201)
        if path.startswith(JOBS):
            return self._job(method, name, query, body)
        if path.startswith(PODS):
            return self._pod(method, name, query, body)
        assert (path, method) == (EVENTS, "GET"), (method, path, collection)
        return _ok({"items": self.events, "metadata": {"resourceVersion": str(self.version)}})

    def _job(self, method: str, name: str, query: dict[str, str], body: Any) -> httpx2.Response:
        if method == "POST":
            name = body["metadata"]["name"]
            if name in self.jobs:
                return refusal(409, "AlreadyExists", f'jobs.batch "{name}" already exists')
            assert "ttlSecondsAfterFinished" not in body["spec"]
            self.version += 1
            body["metadata"] |= {"creationTimestamp": self.now(), "resourceVersion": str(self.version)}
            self.jobs[name] = body
            return _ok(body, 201)
        if not name:
            found = [job for job in self.jobs.values() if _matches(job, query)]
            return _ok({"items": found, "metadata": {"resourceVersion": str(self.version)}})
        if name not in self.jobs:
            return refusal(404, "NotFound", f'jobs.batch "{name}" not found')
        if method == "DELETE":
            self.deleted.append((name, {**query, **(body or {})}))
            del self.jobs[name]
            return _ok({"kind": "Status", "status": "Success"})
        assert method == "GET"
        return _ok(self.jobs[name])

    def _pod(self, method: str, name: str, query: dict[str, str], body: Any) -> httpx2.Response:
        if not name:
            return self._watch(query) if "watch" in query else self._list(query)
        if name.endswith("/log"):
            text = self.logs.get(name.removesuffix("/log"))
            return httpx2.Response(200, text=text) if text is not None else refusal(404, "NotFound", "no log")
        if name not in self.pods:
            return refusal(404, "NotFound", f'pods "{name}" not found')
        if method == "DELETE":
            self.deleted.append((name, {**query, **(body or {})}))
            return _ok(self.pods[name])
        assert method == "GET"
        return _ok(self.pods[name])

    def _list(self, query: dict[str, str]) -> httpx2.Response:
        found = [pod for pod in self.pods.values() if _matches(pod, query)]
        start, size = int(query.get("continue", "0")), int(query["limit"])
        more = {"continue": str(start + size)} if start + size < len(found) else {}
        about = {"resourceVersion": str(self.version), **more}
        return _ok({"items": found[start : start + size], "metadata": about})

    def _watch(self, query: dict[str, str]) -> httpx2.Response:
        since = int(query["resourceVersion"])
        if since < self.oldest:
            gone = _status(410, "Expired", "too old resource version")
            return httpx2.Response(200, content=_line("ERROR", gone), headers=_JSON)
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        for version, kind, pod in self.history:
            if version > since:
                queue.put_nowait(_line(kind, pod))
        self._watchers.add(queue)
        return httpx2.Response(200, stream=_Stream(queue, self._watchers), headers=_JSON)

    def _change(self, kind: str, pod: Document) -> None:
        self.version += 1
        pod["metadata"]["resourceVersion"] = str(self.version)
        if kind == "DELETED":
            del self.pods[pod["metadata"]["name"]]
        else:
            self.pods[pod["metadata"]["name"]] = pod
        self.history.append((self.version, kind, json.loads(json.dumps(pod))))
        for watcher in self._watchers:
            watcher.put_nowait(_line(kind, pod))


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, queue: asyncio.Queue[bytes | None], watchers: set[asyncio.Queue[bytes | None]]) -> None:
        self._queue, self._watchers = queue, watchers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (line := await self._queue.get()) is not None:
            yield line
        raise httpx2.ReadError("the connection was cut")

    async def aclose(self) -> None:
        self._watchers.discard(self._queue)


_JSON = {"Content-Type": "application/json"}


def refusal(code: int, reason: str, message: str, **headers: str) -> httpx2.Response:
    return httpx2.Response(code, json=_status(code, reason, message), headers=headers)


def _ok(body: Document, code: int = 200) -> httpx2.Response:
    return httpx2.Response(code, json=body)


def _status(code: int, reason: str, message: str) -> Document:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message, "metadata": {}}


def _line(kind: str, document: Document) -> bytes:
    return json.dumps({"type": kind, "object": document}).encode() + b"\n"


def _matches(document: Document, query: dict[str, str]) -> bool:
    labels = document["metadata"]["labels"]
    wanted = dict(each.split("=") for each in query["labelSelector"].split(","))
    return all(labels.get(name) == value for name, value in wanted.items())


# ── statuses of pods, as kubelets write them ─────────────────────────────────────────────────────

WHEN = {"startedAt": "2026-11-18T09:00:01Z", "finishedAt": "2026-11-18T09:00:05Z"}


def container(name: str = "main", **state: Any) -> Document:
    return {"name": name, "image": "x", "imageID": "x", "ready": False, "restartCount": 0, "state": state}


def running() -> Document:
    return {"phase": "Running", "containerStatuses": [container(running={"startedAt": WHEN["startedAt"]})]}


def ended(code: int, reason: str = "", **more: Any) -> Document:
    terminated = {"exitCode": code, "reason": reason or ("Completed" if code == 0 else "Error"), **WHEN}
    phase = "Succeeded" if code == 0 else "Failed"
    return {"phase": phase, "containerStatuses": [container(terminated=terminated)], **more}


def unschedulable(message: str) -> Document:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"phase": "Pending", "conditions": [condition]}


def waiting(reason: str, message: str) -> Document:
    return {"phase": "Pending", "containerStatuses": [container(waiting={"reason": reason, "message": message})]}


def disrupted(reason: str, message: str, code: int = 137) -> Document:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
    return {**ended(code), "conditions": [condition]}
