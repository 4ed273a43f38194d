"""A shared process whose worker cannot write how an attempt ended, while the process is at the next one."""

from __future__ import annotations

from typing import Any

import pytest

from ork.errors import ObjectsError
from ork.worker.pool import shared_supervisor
from ork.worker.pool.shared_process_handle import SharedReply
from ork.worker.pool.shared_supervisor import SharedSupervisor
from ork.worker.system import processes

FIRST, SECOND, THIRD = b"r/a/0/1", b"r/b/0/1", b"r/c/0/1"


class Order:
    def __init__(self, attempt: bytes) -> None:
        self.attempt = attempt
        self.log = None
        self.request = {"isolation": "shared", "objects": "disk", "attempt": attempt.decode()}


class Disk:
    is_full = True

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def put_last_status(self, _attempt: str, document: bytes) -> None:
        if self.is_full:
            raise ObjectsError("the disk is full")
        self.written.append(document)

    def put_first_statuses(self, statuses: list[tuple[str, bytes]]) -> None:
        for attempt, document in statuses:
            self.put_last_status(attempt, document)


class AttemptTag:
    def write(self, _attempt: bytes) -> None: ...


class Signals:
    terms, wake = 0, 98

    def quiet(self) -> None: ...


class Host:
    descriptor, is_open, room, tag = 99, True, 8, AttemptTag()

    def __init__(self) -> None:
        self.signals = Signals()
        self.told: list[tuple[bytes, bytes]] = []

    def over(self, order: Order, document: bytes, **_: Any) -> None:
        self.told.append((order.attempt, document))

    def is_fresh(self) -> bool:
        return True

    def leave(self) -> None:
        self.room = 0

    def send_all(self) -> None: ...


class Process:
    """Has ended the first, begun the second, and not yet taken the third."""

    answers, printed, is_gone, has_begun = 96, 97, False, True

    imports: tuple[()] = ()

    def __init__(self) -> None:
        self._answers = [SharedReply(b"done\t%b\tnormal\tthe end of the first" % FIRST)]
        self._in_socket = {THIRD}
        self.given: list[bytes] = []

    def reclaim(self) -> set[bytes]:
        attempts, self._in_socket = self._in_socket, set()
        return attempts

    def read_answers(self) -> list[SharedReply]:
        answers, self._answers = self._answers, []
        return answers

    def wait(self, *_: Any, **__: Any) -> set[int]:
        return {self.answers} if self._answers else set()

    def give(self, order: Order) -> bool:
        self.given.append(order.attempt)
        return True


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk()
    monkeypatch.setattr(processes, "become_subreaper", lambda: True)
    monkeypatch.setattr(shared_supervisor, "opened_for", lambda *_: made)
    monkeypatch.setattr(shared_supervisor, "WRITE_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(shared_supervisor, "ENDS", {b"done": b"over"})
    return made


class Scene:
    def __init__(self, disk: Disk) -> None:
        self.host, self.process = Host(), Process()
        self.waiting: list[Any] = []
        self.sharing = SharedSupervisor(self.host, self.waiting)  # type: ignore[arg-type]
        self.sharing._given.extend(map(Order, (FIRST, SECOND, THIRD)))  # type: ignore[arg-type]
        self.sharing._process = self.process  # type: ignore[assignment]
        self.sharing._watch = self.watch  # type: ignore[method-assign]
        self.disk = disk
        self.watched: list[bytes] = []
        self.given_by_then: list[bytes] = []

    def watch(self, _reply: object) -> None:
        """As a shim does, with a heartbeat before there is room again and one after."""
        order = self.sharing._given.pop(0)
        self.watched.append(order.attempt)
        self.sharing._write_again()
        self.given_by_then += self.process.given
        assert self.disk.written == []
        self.disk.is_full = False
        self.sharing._write_again()
        assert self.disk.written == [b"the end of the first"]
        self.process.has_begun = False
        self.process.is_gone = True
        self.sharing._process = None
        self.waiting.clear()


def test_the_attempt_that_the_process_is_at_is_watched_and_nothing_more_is_begun(disk: Disk) -> None:
    scene = Scene(disk)
    scene.sharing.work()
    assert scene.watched == [SECOND]
    assert scene.given_by_then == []
    assert scene.host.told == [(FIRST, b"the end of the first")]


def test_an_end_that_is_not_written_counts_as_begun_when_orders_are_taken_back(disk: Disk) -> None:
    scene = Scene(disk)
    scene.sharing._read_replies()
    assert scene.sharing.reclaim() == [FIRST, SECOND]
    assert [order.attempt for order in scene.waiting] == [THIRD]


def test_a_request_to_go_ends_the_patience(disk: Disk) -> None:
    scene = Scene(disk)
    scene.sharing._read_replies()
    scene.host.signals.terms += 1
    scene.sharing._write_again()
    scene.sharing._report_written()
    assert (scene.host.told, scene.host.room) == ([(FIRST, b"")], 0)
