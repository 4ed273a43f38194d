"""Resolves the image of an attempt to its id, and pulls it if necessary."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from ork.errors import EngineError
from ork.executors.docker.credentials import credentials_for
from ork.executors.docker.engine import Engine
from ork.executors.docker.names import read_image_name

_ID = "sha256:"  # a local image id, which no registry knows


class Image(NamedTuple):
    """`id` identifies the content; `digest` is the registry's digest, if it came from one."""

    id: str
    digest: str | None
    folder: str


class Images:
    """Concurrent pulls of one image are combined. `logins` is the folder that `docker login` writes to."""

    def __init__(self, engine: Engine, logins: str) -> None:
        self._engine = engine
        self._logins = logins
        self._pulls: dict[str, asyncio.Task[None]] = {}

    async def get(self, reference: str, pull: str) -> Image:
        """The image, pulled if allowed and necessary. EngineError with status 404 if it is not available."""
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
        # Shielded: if one waiter is cancelled, the others keep waiting.
        await asyncio.shield(pull)

    async def _pull_alone(self, reference: str) -> None:
        registry = read_image_name(reference).registry
        # Read each time, so that a new login takes effect at once.
        credentials = await asyncio.to_thread(credentials_for, registry, self._logins)
        await self._engine.pull(reference, credentials)


def _digest(image: Mapping[str, Any]) -> str | None:
    names = image.get("RepoDigests") or []
    return str(names[0]).partition("@")[2] or None if names else None
