"""Calls to a container engine: a version of its API settled on, answers in time, and its refusals as errors."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias
from urllib.parse import urlencode

from ork.errors import AnswerLostError, EngineError
from ork.executors.docker.address import EngineAddress
from ork.executors.docker.http import Answer, ask

ANSWER_SECONDS = 60.0
LARGEST_ANSWER = 64 << 20

Query: TypeAlias = Mapping[str, str | None] | None


class Calls:
    def __init__(self, address: EngineAddress) -> None:
        self._address = address
        self._prefix: str | None = None
        self.answered_at = time.monotonic()

    async def ping(self) -> str:
        """The newest version of the API the engine speaks; empty where it does not say."""
        async with _in_time(ANSWER_SECONDS), await ask(self._address, "GET", "/_ping") as answer:
            await answer.read(LARGEST_ANSWER)
            return answer.headers.get("api-version", "")

    async def json(self, method: str, target: str, query: Query = None, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if data is not None else {}
        async with _in_time(ANSWER_SECONDS), await self.answer(method, target, query, data, headers=headers) as answer:
            return parsed(await answer.read(LARGEST_ANSWER))

    async def there(self, method: str, target: str) -> Any:
        """None for what the engine does not have."""
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
        body: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        fine: tuple[int, ...] = (),
    ) -> None:
        answering = self.answer(method, target, query, body, headers=headers, fine=fine)
        async with _in_time(ANSWER_SECONDS), await answering as answer:
            await answer.read(LARGEST_ANSWER)

    async def answer(
        self,
        method: str,
        target: str,
        query: Query = None,
        body: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        fine: tuple[int, ...] = (),
        seconds: float = ANSWER_SECONDS,
    ) -> Answer:
        """A good answer, or one whose status is `fine`; its body may take as long as it likes."""
        async with _in_time(seconds):
            answer = await ask(self._address, method, await self._versioned(target, query), headers, body)
            self.answered_at = time.monotonic()
            if answer.status < 400 or answer.status in fine:
                return answer
            async with answer:
                raise EngineError(_complaint(await answer.read(LARGEST_ANSWER), answer.status), status=answer.status)

    async def _versioned(self, target: str, query: Query) -> str:
        if self._prefix is None:
            # Said outright: an engine that is replaced by a newer one goes on meaning the same.
            version = await self.ping()
            self._prefix = f"/v{version}" if version else ""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        return self._prefix + target + (f"?{urlencode(given)}" if given else "")


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
