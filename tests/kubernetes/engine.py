"""The container engine as the node agent uses it: its HTTP API on a Unix socket."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import AsyncIterator
from typing import Any

import httpx2

Document = dict[str, Any]


class EngineError(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Engine:
    def __init__(self, url: str) -> None:
        self._http = httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(
                uds=url.removeprefix("unix://"),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=32),
            ),
            base_url="http://engine",
            timeout=httpx2.Timeout(120),
        )

    async def create(self, name: str, body: Document) -> str:
        """The id of a new container; one of that name, left by an earlier try, is removed before."""
        try:
            made = await self._send("POST", "/containers/create", body, name=name)
        except EngineError as error:
            if error.status != 409:
                raise
            await self.remove(name)
            made = await self._send("POST", "/containers/create", body, name=name)
        return str(made["Id"])

    async def start(self, container: str) -> None:
        await self._send("POST", f"/containers/{container}/start")

    async def wait(self, container: str) -> None:
        await self._send("POST", f"/containers/{container}/wait", timeout=None)

    async def inspect(self, container: str) -> Document:
        return await self._send("GET", f"/containers/{container}/json")

    async def kill(self, container: str, signal: str) -> None:
        """Does nothing if it has ended."""
        try:
            await self._send("POST", f"/containers/{container}/kill", signal=signal)
        except EngineError as error:
            if error.status not in (404, 409):
                raise

    async def remove(self, container: str) -> None:
        try:
            await self._send("DELETE", f"/containers/{container}", force="1", v="1")
        except EngineError as error:
            if error.status not in (404, 409):
                raise

    async def labelled(self, label: str) -> list[str]:
        filters = json.dumps({"label": [label]})
        listed = await self._json("GET", "/containers/json", all="1", filters=filters)
        return [str(each["Id"]) for each in listed]

    async def execute(self, container: str, argv: list[str]) -> tuple[int, str]:
        """Runs a command in a container: its exit code and what it printed."""
        body = {"Cmd": argv, "AttachStdout": True, "AttachStderr": True}
        made = await self._send("POST", f"/containers/{container}/exec", body)
        answer = await self._http.post(f"/exec/{made['Id']}/start", json={"Detach": False, "Tty": False})
        printed = b"".join(_frames(answer.content))
        ended = await self._send("GET", f"/exec/{made['Id']}/json")
        return int(ended["ExitCode"] or 0), printed.decode(errors="replace")

    async def logs(self, container: str, **query: str) -> AsyncIterator[bytes]:
        asked = {"stdout": "1", "stderr": "1", **query}
        rest = b""
        async with self._http.stream("GET", f"/containers/{container}/logs", params=asked, timeout=None) as answer:
            async for data in answer.aiter_raw():
                rest += data
                while len(rest) >= 8:
                    (size,) = struct.unpack(">I", rest[4:8])
                    if len(rest) < 8 + size:
                        break
                    yield rest[8 : 8 + size]
                    rest = rest[8 + size :]

    async def image(self, name: str) -> Document | None:
        try:
            return await self._send("GET", f"/images/{name}/json")
        except EngineError as error:
            if error.status == 404:
                return None
            raise

    async def pull(self, name: str, credentials: Document | None) -> None:
        """Raises with the engine's own words."""
        headers = {}
        if credentials:
            headers["X-Registry-Auth"] = base64.urlsafe_b64encode(json.dumps(credentials).encode()).decode()
        answer = await self._http.post("/images/create", params={"fromImage": name}, headers=headers)
        if answer.status_code >= 400:
            raise EngineError(answer.status_code, _message(answer))
        for line in answer.text.splitlines():
            said = json.loads(line)
            if "error" in said:
                raise EngineError(500, str(said["error"]))

    async def close(self) -> None:
        await self._http.aclose()

    async def _send(self, method: str, path: str, body: Document | None = None, **query: Any) -> Document:
        found = await self._json(method, path, body, **query)
        return found if isinstance(found, dict) else {}

    async def _json(self, method: str, path: str, body: Document | None = None, **query: Any) -> Any:
        timeout = query.pop("timeout", 120)
        answer = await self._http.request(method, path, json=body, params=query, timeout=timeout)
        if answer.status_code >= 400:
            raise EngineError(answer.status_code, _message(answer))
        return answer.json() if answer.content else {}


def _message(answer: httpx2.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError):
        return answer.text


def _frames(data: bytes) -> list[bytes]:
    """The payloads of a multiplexed stream that is whole."""
    found = []
    while len(data) >= 8:
        (size,) = struct.unpack(">I", data[4:8])
        found.append(data[8 : 8 + size])
        data = data[8 + size :]
    return found
