"""What every executor promises, asked of each of them. A new one joins with one entry in `SUBJECTS`: a `CommandSubject`, if it
runs commands on this machine, else a subject of its own."""

from __future__ import annotations

import asyncio
import fcntl
import time
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest

from ork.executors.executor import Executor, GroupOrder, LaunchOrder, Presence, StatusCallback
from ork.executors.local import LocalExecutor
from ork.model.ids import AttemptKey
from ork.model.record import replaced
from ork.model.task import Attempt
from ork.model.workflow import Command, Const, Isolation, TaskSpec
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.opening import open_objects
from ork.scheduler.statuses import close_gate
from ork.testing.clock import EPOCH
from ork.testing.executor import ScriptedExecutor
from ork.testing.faults import SimulatedProcess
from ork.testing.platform import Platform
from tests.docker import Daemon, busybox, daemon_or_skip, own_daemon
from tests.integration.dock import Dock
from tests.integration.workshop import ENDS, Workshop
from tests.unit.testing.stage import Stage


class Subject(Protocol):
    """An executor under test, and an order for an attempt that runs until it is stopped."""

    executor: Executor
    order: LaunchOrder

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Runs a coroutine of an executor, and returns its result."""

    def let_pass(self) -> None:
        """Lets a short time pass, in which processes, threads and callbacks run."""

    def starts(self) -> int:
        """How often user code of the attempt was started."""

    def successor(self) -> Executor:
        """The executor of another scheduler in the same place, as if the first had died."""

    def seen_elsewhere(self) -> Presence:
        """What `find` returns for the attempt on another machine, or with another engine."""

    def short_order(self) -> LaunchOrder:
        """An order for another attempt, which prints `out` and exits with 7. Skips the test where nothing can be printed."""

    def result(self, attempt: Attempt) -> tuple[int, bytes] | None:
        """Exit code and log of an attempt, as its documents have them; None until it has ended."""

    def close(self) -> None:
        """Stops and removes everything that is left."""


class OnLoop:
    """For real executors, which need an event loop. The workshop has the object store, and signs specs as a scheduler does."""

    def __init__(self, shop: Workshop) -> None:
        self._shop = shop
        self._loop = asyncio.new_event_loop()
        self._opened: list[Executor] = []

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(work)

    def let_pass(self) -> None:
        self.do(asyncio.sleep(0.05))

    def result(self, attempt: Attempt) -> tuple[int, bytes] | None:
        status = self._shop.status(attempt)
        return (status["exit_code"], self._shop.log(attempt)) if status and status["state"] in ENDS else None

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


class CommandSubject(OnLoop):
    """For an executor that runs commands on this machine. `make` returns one, as each scheduler would make it, from the
    attempts' documents and an empty folder. `elsewhere` turns the external name of an attempt into one of another machine."""

    def __init__(
        self, folder: Path, make: Callable[[AttemptDocuments, Path], Executor], elsewhere: Callable[[str], str]
    ) -> None:
        super().__init__(Workshop(folder))
        self._folder, self._make, self._elsewhere = folder, make, elsewhere
        self.executor = self.successor()
        self.order = self._command("echo x >> starts; exec sleep 600", "work")

    def starts(self) -> int:
        began = self._shop.root / "starts"
        return len(began.read_text().split()) if began.exists() else 0

    def successor(self) -> Executor:
        self._opened.append(self._make(open_objects(self._shop.objects.url), self._folder))
        return self._opened[-1]

    def seen_elsewhere(self) -> Presence:
        attempt = self.order.attempt
        other = replaced(attempt, external_name=self._elsewhere(attempt.external_name))
        return presence(self, self.executor, other)

    def short_order(self) -> LaunchOrder:
        return self._command("sleep 1; echo out; exit 7", "short")

    def _command(self, script: str, task: str) -> LaunchOrder:
        attempt = self._shop.attempt(task)
        attempt = replaced(attempt, executor=self.executor.name, external_name=self.executor.name_for(attempt.key))
        return self._shop.order(attempt, argv=["sh", "-c", script], news=self.executor.status_address)

    def close(self) -> None:
        self.do(self.executor.stop([self.order.attempt], at_once=True))
        super().close()


def _local(documents: AttemptDocuments, folder: Path) -> Executor:
    return LocalExecutor("python", documents, socket_dir=str(folder), isolation=Isolation.FORK)


def _on_another_machine(local_name: str) -> str:
    kind, _, rest = local_name.split(":", 2)
    return f"{kind}:another-machine:{rest}"


class CloudRunSubject(CommandSubject):
    """On a fake Cloud Run, whose containers are processes of this machine."""

    def __init__(self, folder: Path) -> None:
        pytest.importorskip("google.cloud.run_v2", reason="the extra `gcp` is not installed")
        from tests.cloud.cloud_run import FakeCloudRun
        from tests.cloud.executors import cloud_run_executor
        from tests.cloud.runners import ProcessRunner

        (folder / "project").mkdir()
        self._cloud = FakeCloudRun(ProcessRunner({"image": folder / "project"}))
        make = partial(cloud_run_executor, self._cloud)
        super().__init__(folder, lambda documents, _: make(documents), lambda name: name.replace("acme", "other"))

    def _command(self, script: str, task: str) -> LaunchOrder:
        from tests.cloud.documents import container_document

        attempt = self._shop.attempt(task)
        attempt = replaced(attempt, executor=self.executor.name, external_name=self.executor.name_for(attempt.key))
        return self._shop.order(attempt, argv=["sh", "-c", script], news=None, container=container_document("image"))

    def group(self, size: int, parallelism: int) -> GroupOrder:
        from tests.cloud.documents import group_order

        return group_order(self._shop, self.executor, size, parallelism, "echo {name} $$ >> grouped; exec sleep 600")

    def _grouped(self) -> list[tuple[AttemptKey, int]]:
        file = self._shop.root / "grouped"
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        keys = {str(order.attempt.key): order.attempt.key for order in self.group(9, 1).orders}
        return [(keys[name], int(pid)) for name, pid in lines]

    def started_attempts(self) -> list[AttemptKey]:
        return [key for key, _ in self._grouped()]

    def running_attempts(self) -> set[AttemptKey]:
        return {key for key, pid in self._grouped() if Path(f"/proc/{pid}").exists()}

    def close_gate(self, attempt: Attempt) -> None:
        assert close_gate(self._shop.objects, attempt, datetime.now(UTC))

    def close(self) -> None:
        super().close()
        self._cloud.close()


class KubernetesSubject(CommandSubject):
    """On a real API server. Pods share this machine's folders and its network, not its processes."""

    def __init__(self, folder: Path) -> None:
        pytest.importorskip("lightkube", reason="the extra `kubernetes` is not installed")
        from tests.kubernetes.cluster import cluster_or_skip
        from tests.kubernetes.subject import container_on, executor_on

        (folder / "project").mkdir()
        cluster = cluster_or_skip()
        self._close = ExitStack()
        namespace = self._close.enter_context(cluster.namespace())
        self._container = container_on(cluster.images.ork, folder)
        make = partial(executor_on, cluster.scheduler(namespace), namespace)
        super().__init__(folder, lambda documents, _: make(documents), lambda name: name.replace(namespace, "other"))

    def _command(self, script: str, task: str) -> LaunchOrder:
        attempt = self._shop.attempt(task)
        attempt = replaced(attempt, executor=self.executor.name, external_name=self.executor.name_for(attempt.key))
        return self._shop.order(attempt, argv=["sh", "-c", script], news=None, container=self._container)

    def group(self, size: int, parallelism: int) -> GroupOrder:
        from tests.kubernetes.subject import group_on

        lock = "import fcntl, sys, time; f = open(sys.argv[1], 'a'); fcntl.flock(f, 2); time.sleep(600)"
        script = f'echo {{name}} >> grouped; exec python3 -c "{lock}" running-$(echo {{name}} | cut -d/ -f3)'
        return group_on(self._shop, self.executor, size, parallelism, script, self._container)

    def started_attempts(self) -> list[AttemptKey]:
        file = self._shop.root / "grouped"
        keys = {str(order.attempt.key): order.attempt.key for order in self.group(9, 1).orders}
        return [keys[name] for name in file.read_text().split()] if file.exists() else []

    def running_attempts(self) -> set[AttemptKey]:
        return {key for key in self.started_attempts() if _is_locked(self._shop.root / f"running-{key.task.index}")}

    def close_gate(self, attempt: Attempt) -> None:
        assert close_gate(self._shop.objects, attempt, datetime.now(UTC))

    def close(self) -> None:
        super().close()
        self._close.close()


def _is_locked(path: Path) -> bool:
    """Whether a process holds a lock of the file."""
    with open(path, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


class DockerSubject(OnLoop):
    _other: Daemon | None = None

    def __init__(self, folder: Path) -> None:
        daemon = daemon_or_skip()
        busybox(daemon)
        self._dock = Dock(folder, daemon)
        super().__init__(self._dock)
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

    def short_order(self) -> LaunchOrder:
        return self._dock.shell(self._dock.attempt("short"), "sleep 1; echo out; exit 7")

    def close(self) -> None:
        self.do(self._dock.container.stop([self.order.attempt], at_once=True))
        self.do(self._sweep())
        super().close()

    async def _sweep(self) -> None:
        broom = self._dock.new_executor()
        broom.release(self._dock.made)
        await broom.close()


class ScriptedSubject:
    def __init__(self, _folder: Path) -> None:
        self._stage = Stage(timeout=None, platform=Platform(size=100))
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

    def short_order(self) -> LaunchOrder:
        pytest.skip("simulated attempts print nothing")

    def result(self, _attempt: Attempt) -> tuple[int, bytes] | None:
        return None

    def group(self, size: int, parallelism: int) -> GroupOrder:
        return self._stage.group(size, parallelism)

    def started_attempts(self) -> list[AttemptKey]:
        return self._stage.witness.started

    def running_attempts(self) -> set[AttemptKey]:
        return self._stage.witness.running

    def close_gate(self, attempt: Attempt) -> None:
        assert close_gate(self._stage.objects, attempt, EPOCH)

    def _on(self, machine: Any) -> Executor:
        process = SimulatedProcess("q", self._stage.kernel, self._stage.faults)
        return ScriptedExecutor("sim", self._stage.cluster, machine, process)

    def close(self) -> None:
        self._stage.kernel.close()


SUBJECTS: dict[str, Callable[[Path], Subject]] = {
    "local": lambda folder: CommandSubject(folder, _local, _on_another_machine),
    "cloudrun": CloudRunSubject,
    "docker": DockerSubject,
    "kubernetes": KubernetesSubject,
    "scripted": ScriptedSubject,
}


_MARKS = {
    "cloudrun": [pytest.mark.slow],
    "docker": [pytest.mark.slow],
    "kubernetes": [pytest.mark.slow, pytest.mark.kubernetes],
}


@pytest.fixture(params=[pytest.param(name, marks=_MARKS.get(name, ())) for name in SUBJECTS])
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


def started(subject: Subject, executor: Executor | None = None, report: StatusCallback = heard) -> None:
    assert list(subject.do((executor or subject.executor).start([subject.order], report))) == []
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


def test_a_gentle_stop_ends_it_too(subject: Subject) -> None:
    started(subject)
    subject.do(subject.executor.stop([subject.order.attempt], at_once=False))
    eventually(subject, lambda: presence(subject, subject.executor, subject.order.attempt) is Presence.GONE)


def test_stopping_an_attempt_that_is_gone_is_not_an_error(subject: Subject) -> None:
    for at_once in (False, True):
        subject.do(subject.executor.stop([subject.order.attempt], at_once=at_once))
    assert presence(subject, subject.executor, subject.order.attempt) is Presence.GONE


def test_the_end_of_an_attempt_is_reported(subject: Subject) -> None:
    reported: list[AttemptKey] = []
    started(subject, report=lambda key, _told=None, /: reported.append(key))
    reported.clear()
    subject.do(subject.executor.stop([subject.order.attempt], at_once=True))
    eventually(subject, lambda: subject.order.attempt.key in reported)


def test_the_end_of_an_adopted_attempt_is_reported(subject: Subject) -> None:
    reported: list[AttemptKey] = []
    started(subject)
    successor = subject.successor()
    subject.do(successor.watch([subject.order.attempt], lambda key, _told=None, /: reported.append(key)))
    subject.do(successor.stop([subject.order.attempt], at_once=True))
    eventually(subject, lambda: subject.order.attempt.key in reported)


def test_log_and_exit_code_survive_the_scheduler(subject: Subject) -> None:
    order = subject.short_order()
    assert list(subject.do(subject.executor.start([order], heard))) == []
    eventually(subject, lambda: presence(subject, subject.executor, order.attempt) is Presence.RUNNING)
    subject.do(subject.executor.close())
    subject.do(subject.successor().watch([order.attempt], heard))
    eventually(subject, lambda: subject.result(order.attempt) is not None)
    assert subject.result(order.attempt) == (7, b"out\n")


def test_a_name_is_the_same_for_the_same_attempt_and_no_other(subject: Subject) -> None:
    key = subject.order.attempt.key
    name = subject.executor.name_for(key)
    assert subject.successor().name_for(key) == name
    assert subject.executor.name_for(key._replace(number=2)) != name


# ── executors that start groups ──────────────────────────────────────────────────────────────────


class GroupSubject(Subject, Protocol):
    """An executor that starts groups, and groups whose attempts run until they are stopped."""

    def group(self, size: int, parallelism: int) -> GroupOrder:
        """The same group each time, with its specs in the object store."""

    def started_attempts(self) -> list[AttemptKey]:
        """The attempts of the group whose user code was started, in order, once for each start."""

    def running_attempts(self) -> set[AttemptKey]:
        """The attempts of the group whose user code runs now."""

    def close_gate(self, attempt: Attempt) -> None:
        """Closes the gate of an attempt that has not started, as a scheduler does that gives it up."""


GROUP_SUBJECTS: dict[str, Callable[[Path], GroupSubject]] = {
    "cloudrun": CloudRunSubject,
    "kubernetes": KubernetesSubject,
    "scripted": ScriptedSubject,
}


@pytest.fixture(params=[pytest.param(name, marks=_MARKS.get(name, ())) for name in GROUP_SUBJECTS])
def grouped(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GroupSubject]:
    made = GROUP_SUBJECTS[request.param](tmp_path)
    yield made
    made.close()


def group_started(
    subject: GroupSubject, size: int, parallelism: int, executor: Executor | None = None, report: StatusCallback = heard
) -> GroupOrder:
    group = subject.group(size, parallelism)
    assert list(subject.do((executor or subject.executor).start_groups([group], report))) == []
    eventually(subject, lambda: len(subject.running_attempts()) >= parallelism)
    return group


def presences(subject: GroupSubject, executor: Executor, group: GroupOrder) -> list[Presence]:
    return list(subject.do(executor.find([order.attempt for order in group.orders])))


def test_an_executor_that_starts_groups_says_how_large_they_may_be(grouped: GroupSubject) -> None:
    task = TaskSpec("task", grouped.executor.name, Command((Const("true"),)), foreach=Const([1, 2]))
    assert 0 < grouped.executor.group_size(task) <= grouped.executor.traits.starts_groups


def test_an_executor_that_starts_none_refuses_them_and_says_so(subject: Subject) -> None:
    if subject.executor.traits.starts_groups:
        pytest.skip("it starts groups")
    group = GroupOrder("group", 1, "00", (subject.order,))
    (refused,) = subject.do(subject.executor.start_groups([group], heard))
    assert (refused.attempt, refused.final) == (subject.order.attempt.key, True)
    assert subject.starts() == 0


def test_a_group_that_nobody_has_started_is_gone(grouped: GroupSubject) -> None:
    assert presences(grouped, grouped.executor, grouped.group(3, 1)) == [Presence.GONE] * 3


def test_no_more_of_a_group_run_at_the_same_time_than_its_parallelism_and_the_others_are_queued(
    grouped: GroupSubject,
) -> None:
    group = group_started(grouped, 5, 2)
    for _ in range(5):
        grouped.let_pass()
    assert len(grouped.running_attempts()) == 2
    found = presences(grouped, grouped.executor, group)
    assert (found.count(Presence.RUNNING), found.count(Presence.QUEUED)) == (2, 3)


def test_the_next_of_a_group_starts_when_one_has_ended_and_each_starts_once(grouped: GroupSubject) -> None:
    group = group_started(grouped, 5, 2)
    attempts = {order.attempt.key: order.attempt for order in group.orders}
    for _ in range(5):
        eventually(grouped, lambda: bool(grouped.running_attempts()))
        ended = min(grouped.running_attempts())
        grouped.do(grouped.executor.stop([attempts[ended]], at_once=True))
        eventually(grouped, lambda ended=ended: ended not in grouped.running_attempts())  # type: ignore[misc]
    assert sorted(grouped.started_attempts()) == sorted(attempts)
    eventually(grouped, lambda: set(presences(grouped, grouped.executor, group)) == {Presence.GONE})


def test_a_start_of_a_group_is_repeatable_also_in_part_and_by_others(grouped: GroupSubject) -> None:
    group = group_started(grouped, 4, 2)
    part = replaced(group, orders=group.orders[1:3])
    for executor in (grouped.executor, grouped.successor()):
        assert list(grouped.do(executor.start_groups([group, part], heard))) == []
    for _ in range(5):
        grouped.let_pass()
    assert len(grouped.running_attempts()) == 2
    assert len(grouped.started_attempts()) == len(set(grouped.started_attempts()))


def test_whoever_comes_next_finds_each_attempt_of_a_group(grouped: GroupSubject) -> None:
    group = group_started(grouped, 3, 1)
    assert presences(grouped, grouped.successor(), group) == [Presence.RUNNING, Presence.QUEUED, Presence.QUEUED]


def test_stopping_one_attempt_of_a_group_lets_the_others_go_on(grouped: GroupSubject) -> None:
    group = group_started(grouped, 2, 2)
    grouped.do(grouped.executor.stop([group.orders[0].attempt], at_once=True))
    key = group.orders[0].attempt.key
    eventually(grouped, lambda: key not in grouped.running_attempts())
    grouped.let_pass()
    assert grouped.running_attempts() == {group.orders[1].attempt.key}


def test_a_queued_attempt_whose_gate_is_closed_never_runs_and_those_behind_it_do(grouped: GroupSubject) -> None:
    group = group_started(grouped, 3, 1)
    first, second, third = (order.attempt for order in group.orders)
    grouped.close_gate(second)
    grouped.do(grouped.executor.stop([second], at_once=True))
    grouped.do(grouped.executor.stop([first], at_once=True))
    eventually(grouped, lambda: third.key in grouped.running_attempts())
    assert second.key not in grouped.started_attempts()


def test_the_end_of_an_attempt_of_a_group_is_reported(grouped: GroupSubject) -> None:
    reported: list[AttemptKey] = []
    group = group_started(grouped, 2, 2, report=lambda key, _told=None, /: reported.append(key))
    reported.clear()
    grouped.do(grouped.executor.stop([group.orders[1].attempt], at_once=True))
    eventually(grouped, lambda: group.orders[1].attempt.key in reported)


def test_what_is_left_of_a_group_can_be_started_again_when_its_unit_has_ended(grouped: GroupSubject) -> None:
    group = group_started(grouped, 1, 1)
    grouped.do(grouped.executor.stop([group.orders[0].attempt], at_once=True))
    eventually(grouped, lambda: presences(grouped, grouped.executor, group) == [Presence.GONE])
    more = grouped.group(3, 1)
    rest = replaced(more, orders=more.orders[1:])
    eventually(grouped, lambda: set(presences(grouped, grouped.executor, rest)) == {Presence.GONE})
    assert list(grouped.do(grouped.executor.start_groups([rest], heard))) == []
    eventually(grouped, lambda: rest.orders[0].attempt.key in grouped.running_attempts())
