"""A request to stop, while the shared process answers."""

from __future__ import annotations

from typing import Any

import pytest

from ork.worker.pool.shared_process_handle import SharedReply
from ork.worker.pool.shared_supervisor import SharedSupervisor
from ork.worker.system import processes


@pytest.fixture(autouse=True)
def nothing_becomes_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "become_subreaper", lambda: True)


class Order:
    def __init__(self, attempt: bytes) -> None:
        self.attempt = attempt


class Host:
    class signals:  # noqa: N801 - as the host has it
        terms = 0

    def __init__(self) -> None:
        self.performed: list[bytes] = []
        self.ended: list[bytes] = []

    def perform_alone(self, order: Order) -> None:
        self.performed.append(order.attempt)

    def over(self, order: Order, *_: Any, **__: Any) -> None:
        self.ended.append(order.attempt)


class Process:
    """Has just said that the attempt is for a process of its own."""

    imports: tuple[()] = ()

    def __init__(self, attempt: bytes) -> None:
        self._answers = [SharedReply(b"alone\t%b\t\t" % attempt)]

    def reclaim(self) -> set[bytes]:
        return set()

    def read_answers(self) -> list[SharedReply]:
        answers, self._answers = self._answers, []
        return answers

    def dismiss(self) -> None: ...


def sharing(host: Host, attempt: bytes) -> tuple[SharedSupervisor, list[Any]]:
    waiting: list[Any] = []
    made = SharedSupervisor(host, waiting)  # type: ignore[arg-type]
    made._given.append(Order(attempt))  # type: ignore[arg-type]
    made._process = Process(attempt)  # type: ignore[assignment]
    return made, waiting


def test_what_is_for_a_process_of_its_own_and_is_stopped_is_never_begun() -> None:
    host = Host()
    made, waiting = sharing(host, b"r/t/0/1")
    assert not made.stop(b"r/t/0/1")
    assert (host.performed, host.ended, list(waiting)) == ([], [b"r/t/0/1"], [])


def test_nothing_else_is_begun_before_a_stop_is_done() -> None:
    host = Host()
    made, waiting = sharing(host, b"r/command/0/1")
    assert not made.stop(b"r/t/0/1")
    assert host.performed == host.ended == []
    assert [order.attempt for order in waiting] == [b"r/command/0/1"]
