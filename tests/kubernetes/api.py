"""The few requests that the node agent sends to the API server."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from typing import Any

import httpx2

Document = dict[str, Any]


class ApiError(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text[:500]}")
        self.status = status


class Api:
    def __init__(self, url: str, token: str, ca: str) -> None:
        self._http = httpx2.AsyncClient(
            base_url=url,
            verify=ssl.create_default_context(cafile=ca),
            headers={"Authorization": f"Bearer {token}"},
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=32),
            timeout=httpx2.Timeout(30),
            trust_env=False,
        )

    async def get(self, path: str, **query: Any) -> Document:
        return await self._send("GET", path, query=query)

    async def post(self, path: str, body: Document) -> Document:
        return await self._send("POST", path, body)

    async def put(self, path: str, body: Document) -> Document:
        return await self._send("PUT", path, body)

    async def patch(self, path: str, body: Document) -> Document:
        return await self._send("PATCH", path, body, "application/strategic-merge-patch+json")

    async def delete(self, path: str, body: Document | None = None) -> Document:
        return await self._send("DELETE", path, body or {})

    async def follow(self, path: str, **query: Any) -> AsyncIterator[tuple[str, Document]]:
        """Yields ("ADDED" | "MODIFIED" | "DELETED", object) for ever; after an interruption it lists and compares."""
        known: dict[str, Document] = {}
        while True:
            try:
                listed = await self.get(path, **query)
                now = {item["metadata"]["uid"]: item for item in listed["items"]}
                for uid in [uid for uid in known if uid not in now]:
                    yield "DELETED", known.pop(uid)
                for uid, item in now.items():
                    event = "MODIFIED" if uid in known else "ADDED"
                    known[uid] = item
                    yield event, item
                async for event, item in self._watch(path, listed["metadata"]["resourceVersion"], query):
                    uid = item["metadata"]["uid"]
                    known[uid] = item
                    if event == "DELETED":
                        known.pop(uid)
                    yield event, item
            except (ApiError, httpx2.HTTPError, ValueError):
                await asyncio.sleep(0.2)

    async def close(self) -> None:
        await self._http.aclose()

    async def _watch(self, path: str, version: str, query: Document) -> AsyncIterator[tuple[str, Document]]:
        asked = {**query, "watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true"}
        async with self._http.stream("GET", path, params=asked, timeout=httpx2.Timeout(30, read=None)) as answer:
            if answer.status_code != 200:
                raise ApiError(answer.status_code, "watch")
            async for line in answer.aiter_lines():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ApiError(int(event["object"].get("code", 500)), str(event["object"].get("message")))
                if event["type"] != "BOOKMARK":
                    yield event["type"], event["object"]

    async def _send(
        self, method: str, path: str, body: Document | None = None, kind: str = "application/json", query: Any = None
    ) -> Document:
        content = None if body is None else json.dumps(body).encode()
        answer = await self._http.request(method, path, content=content, params=query, headers={"Content-Type": kind})
        if answer.status_code >= 400:
            raise ApiError(answer.status_code, answer.text)
        found: Document = answer.json()
        return found


def pod_path(pod: Document, sub: str = "") -> str:
    about = pod["metadata"]
    return f"/api/v1/namespaces/{about['namespace']}/pods/{about['name']}{sub}"
