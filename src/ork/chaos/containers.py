"""The containers of the sandbox: found by their mount of its ledger, killed, and removed at the end."""

from __future__ import annotations

import json
from contextlib import suppress
from random import Random
from typing import Any

from ork.chaos.ledger import copy_recorder
from ork.chaos.sandbox import Sandbox
from ork.chaos.shape import WORKER
from ork.errors import EngineError, UsageError
from ork.executors.docker.address import engine_address
from ork.executors.docker.engine import Engine
from ork.executors.docker.making import LABEL

_STAND_IN = "stand_in.sh"
_KILLED = 137
_HINT = "name an image with `sh` and `flock`, such as busybox, alpine or debian"


class Containers:
    """`address` is that of the container engine, None for the default one."""

    def __init__(self, sandbox: Sandbox, image: str, address: str | None) -> None:
        self._sandbox = sandbox
        self._image = image
        self._engine = Engine(engine_address(address))

    async def prepare(self) -> None:
        """Writes the worker config of the sandbox. UsageError if there is no engine, or if the image does not fit."""
        try:
            await self._engine.ping()
        except EngineError as error:
            raise UsageError(f"there is no container engine: {error.message}", hint="set DOCKER_HOST") from error
        try:
            await self._check_image()
        except EngineError as error:
            raise UsageError(f"stand-ins cannot run in {self._image}: {error.message}", hint=_HINT) from error
        copy_recorder(self._sandbox.ledger.folder, _STAND_IN)
        config = {"where": "docker", "network": "none", "volumes": [f"{self._sandbox.ledger.folder}:/ledger"]}
        (self._sandbox.project / "workers.yaml").write_text(json.dumps({WORKER: config}))

    async def _check_image(self) -> None:
        """UsageError if it lacks what stand-ins need. The engine pulls it first, if it does not have it."""
        if await self._engine.image(self._image) is None:
            await self._engine.pull(self._image)
        command = ["sh", "-c", "command -v flock && command -v sleep && command -v date && command -v tr"]
        config = {"Image": self._image, "Entrypoint": [], "Cmd": command, "HostConfig": {"NetworkMode": "none"}}
        made = await self._engine.create(self._sandbox.folder.name, config)
        try:
            await self._engine.start(made.id)
            if await self._engine.wait(made.id):
                raise UsageError(f"stand-ins cannot run in {self._image}: it has no `flock`", hint=_HINT)
        finally:
            await self._engine.remove(made.id, force=True)

    async def kill_one(self, dice: Random) -> str | None:
        """Kills a running container, and returns its attempt; None if there is none."""
        try:
            running = [each for each in await self._own() if each["State"] == "running"]
            if not running:
                return None
            victim = dice.choice(running)
            await self._engine.signal(victim["Id"], "KILL")
            left = await self._engine.inspect(victim["Id"])
        except EngineError:
            return None
        has_ended_itself = left is not None and left["State"].get("ExitCode") not in (None, _KILLED)
        return None if has_ended_itself else str(victim["Labels"][LABEL])

    async def alive(self) -> dict[int, str]:
        """The attempts of the containers that are still running, numbered."""
        return {
            number: each["Labels"][LABEL] for number, each in enumerate(await self._own()) if each["State"] == "running"
        }

    async def remove(self) -> None:
        with suppress(EngineError):
            for each in await self._own():
                with suppress(EngineError):
                    await self._engine.remove(each["Id"], force=True)

    async def _own(self) -> list[dict[str, Any]]:
        """The containers that write into this sandbox's ledger."""
        folder = str(self._sandbox.ledger.folder)
        found = await self._engine.containers([LABEL])
        return [each for each in found if any(mount.get("Source") == folder for mount in each.get("Mounts", ()))]
