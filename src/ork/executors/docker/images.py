"""The image of an attempt: pulled if it must be, and named by what it is rather than by what it is called."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from ork.errors import EngineError
from ork.executors.docker.credentials import credentials_for
from ork.executors.docker.engine import Engine
from ork.executors.docker.names import read_image_name

_ID = "sha256:"  # an engine's own name for what it has: no registry knows it


class Image(NamedTuple):
    """`id` names the content for ever; `digest` is the registry's word for it, if it came from one."""

    id: str
    digest: str | None
    folder: str


class Images:
    """Pulls of one image at the same time are one pull. `logins` is the folder that `docker login` writes to."""

    def __init__(self, engine: Engine, logins: str) -> None:
        self._engine = engine
        self._logins = logins
        self._pulls: dict[str, asyncio.Task[None]] = {}

    async def get(self, reference: str, pull: str) -> Image:
        """EngineError with status 404 if it cannot be had."""
        may_pull = not reference.startswith(_ID) and pull != "never"
        found = await self._engine.image(reference)
        if may_pull and (pull == "always" or found is None):
            await self._pull(reference)
            found = await self._engine.image(reference)
        if found is None:
            hint = "`pull: missing` in workers.yaml asks its registry" if pull == "never" else None
            raise EngineError(f"the engine has no image {reference}", status=404, hint=hint)
        return Image(found["Id"], _digest(found), (found.get("Config") or {}).get("WorkingDir") or "/")

    async def _pull(self, reference: str) -> None:
        pull = self._pulls.get(reference)
        if pull is None:
            pull = asyncio.ensure_future(self._pull_alone(reference))
            self._pulls[reference] = pull
            pull.add_done_callback(lambda _: self._pulls.pop(reference, None))
        # One that waits may be told to go: the others go on waiting.
        await asyncio.shield(pull)

    async def _pull_alone(self, reference: str) -> None:
        registry = read_image_name(reference).registry
        # Anew each time, so that a login holds at once.
        credentials = await asyncio.to_thread(credentials_for, registry, self._logins)
        await self._engine.pull(reference, credentials)


def _digest(image: Mapping[str, Any]) -> str | None:
    names = image.get("RepoDigests") or []
    return str(names[0]).partition("@")[2] or None if names else None
