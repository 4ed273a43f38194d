"""Requests to a container engine: a fixed version of its API, time limits, and refusals as errors.

When a request fails, the error says whether the engine may have carried it out.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self, TypeAlias
from urllib.parse import urlencode

import httpx2

from ork.errors import AnswerLostError, EngineError, EngineUnreachableError
from ork.executors.docker.address import EngineAddress
from ork.outbound.clients import async_client, reason, transport_to

ANSWER_SECONDS = 60.0
MAX_RESPONSE_BYTES = 64 << 20

Body: TypeAlias = bytes | AsyncIterator[bytes] | None
Query: TypeAlias = Mapping[str, str | None] | None


class EngineResponse:
    """Status and headers have arrived; the body is read as it comes. `async with` closes the connection."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response = response

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._response.aclose()

    async def read(self, limit: int) -> bytes:
        """The whole body; AnswerLostError if it breaks off or is larger than the limit."""
        body = bytearray()
        async for part in self.parts():
            body += part
            if len(body) > limit:
                raise AnswerLostError(f"the engine's answer has more than {limit} bytes")
        return bytes(body)

    async def parts(self) -> AsyncIterator[bytes]:
        """The body in pieces, as they arrive; AnswerLostError if it breaks off."""
        try:
            async for part in self._response.aiter_raw():
                yield part
        except httpx2.HTTPError as error:
            raise AnswerLostError(f"the engine's answer broke off: {reason(error)}") from None


class EngineCalls:
    """Each request has a connection of its own: an engine that was restarted is reached again at once, and its
    certificates may be replaced at any time."""

    def __init__(self, address: EngineAddress) -> None:
        self._address = address
        self._prefix: str | None = None
        self.answered_at = time.monotonic()

    async def ping(self) -> str:
        """The newest API version of the engine; empty if it does not report one."""
        async with _in_time(ANSWER_SECONDS), await self._send("GET", "/_ping") as answer:
            await answer.read(MAX_RESPONSE_BYTES)
            return answer.headers.get("api-version", "")

    async def json(self, method: str, target: str, query: Query = None, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if data is not None else {}
        async with _in_time(ANSWER_SECONDS), await self.answer(method, target, query, data, headers=headers) as answer:
            return parsed(await answer.read(MAX_RESPONSE_BYTES))

    async def there(self, method: str, target: str) -> Any:
        """The response as JSON, or None for 404."""
        try:
            return await self.json(method, target)
        except EngineError as error:
            if error.status == 404:
                return None
            raise

    async def done(
        self,
        method: str,
        target: str,
        query: Query = None,
        body: Body = None,
        *,
        headers: Mapping[str, str] | None = None,
        fine: tuple[int, ...] = (),
        seconds: float = ANSWER_SECONDS,
    ) -> None:
        answering = self.answer(method, target, query, body, headers=headers, fine=fine, seconds=seconds)
        async with _in_time(seconds), await answering as answer:
            await answer.read(MAX_RESPONSE_BYTES)

    async def answer(
        self,
        method: str,
        target: str,
        query: Query = None,
        body: Body = None,
        *,
        headers: Mapping[str, str] | None = None,
        fine: tuple[int, ...] = (),
        seconds: float = ANSWER_SECONDS,
    ) -> EngineResponse:
        """A successful response, or one whose status is in `fine`. Reading its body has no time limit."""
        async with _in_time(seconds):
            answer = await self._send(method, await self._versioned(target, query), headers, body)
            self.answered_at = time.monotonic()
            if answer.status < 400 or answer.status in fine:
                return answer
            async with answer:
                raise EngineError(
                    _complaint(await answer.read(MAX_RESPONSE_BYTES), answer.status), status=answer.status
                )

    async def _send(
        self, method: str, target: str, headers: Mapping[str, str] | None = None, body: Body = None
    ) -> EngineResponse:
        """EngineUnreachableError: nothing was sent. AnswerLostError: the engine may have carried it out."""
        address = self._address
        try:
            client = async_client(transport_to(address.url, socket=address.path, tls=address.tls()))
            request = client.build_request(method, address.url + target, headers=headers, content=body)
            return EngineResponse(await client.send(request, stream=True))
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise _unreachable(address, reason(error)) from None
        except httpx2.HTTPError as error:
            raise AnswerLostError(f"no answer from the engine at {address}: {reason(error)}") from None
        except OSError as error:
            why = f"the certificates in {address.certificates} cannot be read: {error.strerror or error}"
            raise _unreachable(address, why) from None

    async def _versioned(self, target: str, query: Query) -> str:
        if self._prefix is None:
            # The version is fixed, so that requests keep their meaning if the engine is upgraded.
            version = await self.ping()
            self._prefix = f"/v{version}" if version else ""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        return self._prefix + target + (f"?{urlencode(given)}" if given else "")


def _unreachable(address: EngineAddress, why: str) -> EngineUnreachableError:
    hint = "is it running? `ork doctor` tries it; DOCKER_HOST or `host` in workers.yaml says where it is"
    return EngineUnreachableError(f"there is no container engine at {address}: {why}", hint=hint)


def parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        raise AnswerLostError("the engine's answer cannot be understood") from None


def _complaint(body: bytes, status: int) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode("utf-8", "replace").strip()[:500] or f"the engine answered {status}"


@asynccontextmanager
async def _in_time(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise AnswerLostError(f"no answer from the engine within {seconds:g} s") from None
