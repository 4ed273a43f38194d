"""What every executor promises, asked of each of them. A new one joins with a subject in `SUBJECTS`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from ork.executors.executor import Executor, LaunchOrder, Presence
from ork.model.record import replaced
from ork.model.task import Attempt
from ork.testing.executor import ScriptedExecutor
from ork.testing.faults import Process
from tests.docker import Daemon, busybox, daemon_or_skip, own_daemon
from tests.integration.dock import Dock
from tests.integration.workshop import Workshop
from tests.unit.testing.stage import Stage


class Subject(Protocol):
    """One attempt that takes long, and executors that may be asked about it."""

    executor: Executor
    order: LaunchOrder

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """What comes of a call."""

    def let_pass(self) -> None:
        """A moment, in which things happen."""

    def starts(self) -> int:
        """How often user code of the attempt was started."""

    def successor(self) -> Executor:
        """Of another scheduler in the same place, as if this one had died."""

    def seen_elsewhere(self) -> Presence:
        """What an executor answers that is on another machine, or has another engine."""

    def close(self) -> None: ...


class OnLoop:
    """For executors that live on an event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._opened: list[Executor] = []

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(work)

    def let_pass(self) -> None:
        self.do(asyncio.sleep(0.05))

    def close(self) -> None:
        for executor in self._opened:
            self.do(executor.close())
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self.do(_all_over(left))
        self._loop.close()


async def _all_over(tasks: Collection[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


class LocalSubject(OnLoop):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._shop = Workshop(folder)
        self.executor: Executor = self._shop.executor
        self._opened.append(self.executor)
        self.order = self._shop.order(self._shop.attempt(), argv=["sh", "-c", "echo x >> starts; exec sleep 600"])

    def starts(self) -> int:
        began = self._shop.root / "starts"
        return len(began.read_text().split()) if began.exists() else 0

    def successor(self) -> Executor:
        self._opened.append(Workshop(self._shop.root.parent).executor)
        return self._opened[-1]

    def seen_elsewhere(self) -> Presence:
        kind, _, rest = self.order.attempt.external_name.split(":", 2)
        other = replaced(self.order.attempt, external_name=f"{kind}:another-machine:{rest}")
        return presence(self, self.executor, other)


class DockerSubject(OnLoop):
    _other: Daemon | None = None

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._daemon = daemon_or_skip()
        busybox(self._daemon)
        self._dock = Dock(folder, self._daemon)
        self.executor: Executor = self._dock.container
        self._opened += [self.executor, self._dock.executor]
        self.order = self._dock.shell(self._dock.attempt(), "sleep 600")

    def starts(self) -> int:
        return self._dock.starts_of(self.order.attempt)

    def successor(self) -> Executor:
        self._opened.append(self._dock.new_executor())
        return self._opened[-1]

    def seen_elsewhere(self) -> Presence:
        """There is another engine on the other machine, which knows nothing of the container."""
        with own_daemon() as other:
            executor = self._dock.new_executor(other.url)
            found = presence(self, executor, self.order.attempt)
            self.do(executor.close())
            return found

    def close(self) -> None:
        self.do(self._dock.container.stop([self.order.attempt], at_once=True))
        self.do(self._sweep())
        super().close()

    async def _sweep(self) -> None:
        broom = self._dock.new_executor()
        broom.release([self.order.attempt])
        await broom.close()


class ScriptedSubject:
    def __init__(self, _folder: Path) -> None:
        self._stage = Stage(timeout=None)
        self.executor: Executor = self._stage.executor
        self.order = self._stage.order()
        self._stage.cluster.script_of = lambda *_: replaced(  # type: ignore[method-assign]
            type(self._stage.cluster).script_of(self._stage.cluster, self.order.attempt.key, has_timeout=False),
            seconds=1e6,
        )

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._stage.do(work)

    def let_pass(self) -> None:
        self._stage.kernel.run(self._stage.kernel.time + 1.0)

    def starts(self) -> int:
        return sum(event == "started" for event, _ in self._stage.witness.events)

    def successor(self) -> Executor:
        return self._on(self._stage.cluster.machines[0])

    def seen_elsewhere(self) -> Presence:
        cluster = self._stage.cluster
        cluster.sees_all = False
        return presence(self, self._on(cluster.add_machine()), self.order.attempt)

    def _on(self, machine: Any) -> Executor:
        process = Process("q", self._stage.kernel, self._stage.faults)
        return ScriptedExecutor("sim", self._stage.cluster, machine, process)

    def close(self) -> None:
        self._stage.kernel.close()


SUBJECTS: dict[str, Callable[[Path], Subject]] = {
    "local": LocalSubject,
    "docker": DockerSubject,
    "scripted": ScriptedSubject,
}


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow if name == "docker" else ()) for name in SUBJECTS])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    made = SUBJECTS[request.param](tmp_path)
    yield made
    made.close()


def presence(subject: Any, executor: Executor, attempt: Attempt) -> Presence:
    (found,) = subject.do(executor.find([attempt]))
    assert isinstance(found, Presence)
    return found


def heard(_key: object, _told: object = None, /) -> None:
    return


def started(subject: Subject, executor: Executor | None = None) -> None:
    assert list(subject.do((executor or subject.executor).start([subject.order], heard))) == []
    eventually(subject, lambda: subject.starts() > 0)


def eventually(subject: Subject, is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        subject.let_pass()


def test_what_nobody_has_started_is_gone(subject: Subject) -> None:
    assert presence(subject, subject.executor, subject.order.attempt) is Presence.GONE


def test_what_was_started_runs(subject: Subject) -> None:
    started(subject)
    assert presence(subject, subject.executor, subject.order.attempt) is Presence.RUNNING


def test_a_start_is_repeatable(subject: Subject) -> None:
    started(subject)
    started(subject)
    started(subject, subject.successor())
    for _ in range(5):
        subject.let_pass()
    assert subject.starts() == 1


def test_whoever_comes_next_in_the_same_place_finds_it(subject: Subject) -> None:
    started(subject)
    assert presence(subject, subject.successor(), subject.order.attempt) is Presence.RUNNING


def test_an_attempt_of_another_machine_or_engine_is_unknown_and_never_gone(subject: Subject) -> None:
    started(subject)
    assert subject.seen_elsewhere() is Presence.UNKNOWN


def test_what_was_stopped_is_gone(subject: Subject) -> None:
    started(subject)
    subject.do(subject.executor.stop([subject.order.attempt], at_once=True))
    eventually(subject, lambda: presence(subject, subject.executor, subject.order.attempt) is Presence.GONE)


def test_a_name_is_the_same_for_the_same_attempt_and_no_other(subject: Subject) -> None:
    key = subject.order.attempt.key
    name = subject.executor.name_for(key)
    assert subject.successor().name_for(key) == name
    assert subject.executor.name_for(key._replace(number=2)) != name
