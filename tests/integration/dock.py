"""A dock for tests of attempts in containers: specs as a scheduler writes them, a real engine, and what comes of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from ork.executors.docker.container_documents import FindMask
from ork.executors.docker.executor import DockerExecutor
from ork.executors.executor import LaunchOrder, Presence
from ork.model.task import Attempt
from ork.worker.supervise.stand_in import StandIn, is_left_over
from tests.docker import Daemon
from tests.integration.workshop import Workshop

NO_LIMITS = {
    "worker": "default", "host": None, "certificates": None, "network": "none", "user": None, "read_only": False,
    "pull": "missing", "cpu": None, "memory": None, "pids": None, "volumes": [],
}  # fmt: skip


class Dock(Workshop):
    """The same as a workshop, with containers instead of processes."""

    def __init__(self, folder: Path, daemon: Daemon, url: str | None = None) -> None:
        super().__init__(folder)
        self.daemon = daemon
        self.container = self.new_executor(url)

    def new_executor(self, url: str | None = None, find_mask: FindMask = lambda _spec: None) -> DockerExecutor:
        """Another scheduler's, if one is there already."""
        return DockerExecutor(
            "container",
            lambda attempt: StandIn(self.objects, attempt),
            self.objects.url,
            is_left_over=lambda attempt: is_left_over(self.objects, attempt),
            host=url or self.daemon.url,
            logins=str(self.daemon.folder / "config"),
            find_mask=find_mask,
        )

    def shell(self, attempt: Attempt, script: str, **spec: Any) -> LaunchOrder:
        return self.plain(attempt, ["sh", "-c", script], **spec)

    def plain(self, attempt: Attempt, argv: list[str], image: str = "busybox", **spec: Any) -> LaunchOrder:
        limits = {**NO_LIMITS, "image": image, **spec.pop("container", {})}
        files = {"to_file": None, "from_file": None}
        return self.order(attempt, kind="container", argv=argv, container=limits, **{**files, **spec})

    async def begin(self, order: LaunchOrder) -> Attempt:
        assert await self.container.start([order], self.news.put_nowait) == []
        return order.attempt

    async def end_of(self, order: LaunchOrder) -> dict[str, Any]:
        """The terminal status of an attempt that was started and ended; then its container may go."""
        await self.begin(order)
        status = await self.ended(order.attempt)
        self.container.release([order.attempt])
        return status

    async def vanished(self, attempt: Attempt, seconds: float = 60) -> None:
        async with asyncio.timeout(seconds):
            while await self.container.find([attempt]) != [Presence.GONE]:
                await asyncio.sleep(0.05)

    def starts_of(self, attempt: Attempt) -> int:
        """How often the engine started containers of this attempt, by its own account."""
        told = self.daemon.docker(
            "events", "--since", "0", "--until", f"{time.time():.9f}", "--filter", f"label=ork.attempt={attempt.key}",
            "--filter", "event=start", "--format", "{{.ID}}",
        )  # fmt: skip
        return len(told.split())


def play(
    folder: Path, daemon: Daemon, scene: Callable[[Dock], Coroutine[Any, Any, None]], url: str | None = None
) -> None:
    """Runs a scene, and sees that it left neither containers nor volumes behind."""

    async def whole() -> None:
        dock = Dock(folder, daemon, url)
        try:
            await scene(dock)
        finally:
            await dock.container.stop(dock.made, at_once=True)
            await dock.container.close()
            await dock.executor.close()
            broom = dock.new_executor()
            broom.release(dock.made)
            await broom.close()

    asyncio.run(whole())
    give_up_at = time.monotonic() + 60  # an engine may take a while to remove what it was told to
    while left := [name for name in daemon.containers() if f".{_run_of(folder)}." in name]:
        assert time.monotonic() < give_up_at, left
        time.sleep(0.1)


def _run_of(folder: Path) -> str:
    return str(Workshop(folder).attempt().key.run)
