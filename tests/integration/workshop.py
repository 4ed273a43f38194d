"""A workshop for tests of real attempts: writes specs as a scheduler does, and waits for what comes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ork.executors import worker_pool
from ork.executors.executor import LaunchOrder, NotStarted, ReportedStatus
from ork.executors.local import LocalExecutor
from ork.executors.local_attempts import Gates
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.record import replaced
from ork.model.task import Attempt, AttemptStatus
from ork.model.workflow import Isolation
from ork.objects import layout
from ork.objects.documents import derive_token, open_signed, sign, token_hash
from ork.objects.opening import open_objects

SIGNING_KEY = b"k" * 32
ENDS = ("success", "failed", "timed_out", "stopped")


class Heard(asyncio.Queue[AttemptKey]):
    """Of which attempts there was news."""

    def put_nowait(self, item: AttemptKey, told: ReportedStatus | None = None) -> None:
        super().put_nowait(item)


class Workshop:
    """One folder with user files (`root`), one object store, one executor, and attempts by task name."""

    def __init__(self, folder: Path, objects_folder: Path | None = None, isolation: Isolation = Isolation.FORK) -> None:
        self.isolation = isolation
        self.root = folder / "project"
        self.root.mkdir(exist_ok=True)
        self.objects = open_objects(f"journal:{objects_folder or folder / 'objects'}")
        self.gates = Gates(self.objects)
        self.executor = LocalExecutor("python", self.objects, socket_dir=str(folder), isolation=isolation)
        self.news = Heard()
        self.made: list[Attempt] = []

    def write(self, name: str, text: str, *, executable: bool = False) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if executable else 0o644)
        return path

    def attempt(self, task: str = "work", number: int = 1) -> Attempt:
        # The store's folder is part of it: tests that run side by side must not find each other's processes.
        key = AttemptKey(RunId("run" + token_hash(self.objects.root)[:12]), TaskKey(task), number)
        made = Attempt(
            key=key,
            status=AttemptStatus.DISPATCHED,
            executor="python",
            external_name=self.executor.name_for(key),
            token_hash=token_hash(derive_token(SIGNING_KEY, str(key))),
            dispatched_at=datetime.now(UTC),
        )
        self.made.append(made)
        return made

    def order(self, attempt: Attempt, **spec: Any) -> LaunchOrder:
        """Writes the spec and gives the order to start it."""
        document = {**self.spec(attempt), **spec}
        document.setdefault("kind", "command" if "argv" in document else "python")
        signed = sign(document, attempt.token_hash)
        self.objects.put_specs([(str(attempt.key), signed)])
        return LaunchOrder(attempt, derive_token(SIGNING_KEY, str(attempt.key)), str(self.root), spec=signed)

    def spec(self, attempt: Attempt) -> dict[str, Any]:
        return {
            "v": 1,
            "attempt": str(attempt.key),
            "run_id": attempt.key.run,
            "workflow": "flow",
            "task": attempt.key.task.name,
            "index": None,
            "parallel_count": None,
            "number": attempt.key.number,
            "round": 1,
            "scheduled_for": None,
            "file": "tasks.py",
            "module": None,
            "function": "main",
            "root": str(self.root),
            "script_dir": None,
            "inputs": None,
            "upstream": {},
            "params": {},
            "env": {},
            "timeout": None,
            "heartbeat_seconds": 0.2,
            "fence_seconds": 45,
            "stop_grace_seconds": 10,
            "inline_limit": 65536,
            "output_limit": 268435456,
            "news": self.executor.status_address,
            "durability": "normal",
        }

    async def start(self, attempt: Attempt, **spec: Any) -> list[NotStarted]:
        return await self.start_order(self.order(attempt, **spec))

    async def start_order(self, order: LaunchOrder) -> list[NotStarted]:
        return list(await self.executor.start([order], self.news.put_nowait))

    async def run(self, attempt: Attempt | None = None, **spec: Any) -> dict[str, Any]:
        """The terminal status of an attempt that was started and ended."""
        attempt = attempt or self.attempt()
        assert await self.start(attempt, **spec) == []
        return await self.ended(attempt)

    async def run_order(self, order: LaunchOrder, **changes: Any) -> dict[str, Any]:
        assert await self.start_order(replaced(order, **changes)) == []
        return await self.ended(order.attempt)

    async def ended(self, attempt: Attempt, seconds: float = 60) -> dict[str, Any]:
        async with asyncio.timeout(seconds):
            while True:
                status = self.status(attempt)
                if status is not None and status["state"] in ENDS:
                    return status
                await self.news.get()

    async def running(self, attempt: Attempt, seconds: float = 30) -> dict[str, Any]:
        async with asyncio.timeout(seconds):
            while (status := self.status(attempt)) is None:
                await self.news.get()
            return status

    async def vanished(self, attempt: Attempt, seconds: float = 30) -> None:
        """Nothing of it is left; there is no event for the death of orphans, so this looks now and then."""
        async with asyncio.timeout(seconds):
            while (await self.executor.find([attempt]))[0].value in ("running", "orphaned"):
                await asyncio.sleep(0.02)

    async def until_file(self, path: Path, seconds: float = 30) -> str:
        """The text of a file that a task writes in one go."""
        async with asyncio.timeout(seconds):
            while not path.exists() or not path.read_text():
                await asyncio.sleep(0.01)
        return path.read_text()

    def status(self, attempt: Attempt) -> dict[str, Any] | None:
        data = self.objects.get(layout.status_key(layout.attempt_stem(attempt.key)))
        return None if data is None else open_signed(data, attempt.token_hash)

    def close_gate(self, attempt: Attempt) -> None:
        """As a scheduler does that gives the attempt up."""
        gate = {"v": 1, "attempt": str(attempt.key), "state": "closed"}
        key = layout.gate_key(layout.attempt_stem(attempt.key))
        assert self.objects.put_if_absent(key, sign(gate, attempt.token_hash))

    def log(self, attempt: Attempt) -> bytes:
        return self.objects.read(layout.log_key(layout.attempt_stem(attempt.key)))

    def folder(self, attempt: Attempt) -> Path:
        """Of all attempts of the run."""
        return Path(self.objects.root) / layout.run_folder(attempt.run)

    def log_path(self, attempt: Attempt) -> Path:
        return Path(self.objects.path(layout.log_key(layout.attempt_stem(attempt.key))))


def is_alive(pid: int) -> bool:
    """A zombie is dead."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def in_workshop(test: Callable[[Workshop], Coroutine[Any, Any, None]]) -> Callable[[Path], None]:
    """Runs an async test in a fresh workshop, and leaves no process behind."""
    return _in_one_workshop(test, Isolation.FORK)


def in_patient_workshop(test: Callable[[Workshop], Coroutine[Any, Any, None]]) -> Callable[[Path], None]:
    """For what is said of servers: on a busy machine one may be slow, and would be done without."""

    async def patiently(shop: Workshop) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(worker_pool, "START_TIMEOUT_SECONDS", 60.0)
            await test(shop)

    patiently.__name__ = test.__name__
    return _in_one_workshop(patiently, Isolation.FORK)


def in_shared_workshop(test: Callable[[Workshop], Coroutine[Any, Any, None]]) -> Callable[[Path], None]:
    return _in_one_workshop(test, Isolation.SHARED)


def _in_one_workshop(
    test: Callable[[Workshop], Coroutine[Any, Any, None]], isolation: Isolation
) -> Callable[[Path], None]:
    def run(tmp_path: Path) -> None:
        run_in_workshop(test, tmp_path, isolation)

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run


def in_every_workshop(test: Callable[[Workshop], Coroutine[Any, Any, None]]) -> Callable[[Path, Isolation], None]:
    """The same, once for every way in which workers come about."""

    @pytest.mark.parametrize("isolation", list(Isolation))
    def run(tmp_path: Path, isolation: Isolation) -> None:
        run_in_workshop(test, tmp_path, isolation)

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run


def run_in_workshop(test: Callable[[Workshop], Coroutine[Any, Any, None]], folder: Path, isolation: Isolation) -> None:
    async def whole() -> None:
        shop = Workshop(folder, isolation=isolation)
        try:
            await test(shop)
        finally:
            await shop.executor.stop(shop.made, at_once=True)
            await shop.executor.close()

    asyncio.run(whole())
