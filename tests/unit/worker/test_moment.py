"""The first moment of an attempt, as a worker waits for its end."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ork.worker.moment import Moment

AT_ONCE = 0.0


class Signals:
    def __init__(self) -> None:
        self.wake, self.ring = os.pipe()


class Pipes:
    """The end, and what is said."""

    def __init__(self) -> None:
        (self.end, self.tell), (self.said, self.say) = os.pipe(), os.pipe()
        self.both = self.end, self.said

    def close(self) -> None:
        for descriptor in (self.end, self.tell, self.said, self.say):
            os.close(descriptor)


@pytest.fixture
def signals() -> Iterator[Signals]:
    made = Signals()
    yield made
    os.close(made.wake)
    os.close(made.ring)


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    made = Pipes()
    yield made
    made.close()


def test_an_end_is_one_if_nothing_else_is_to_be_read(signals: Signals, pipes: Pipes) -> None:
    moment = Moment(signals)  # type: ignore[arg-type]
    assert not moment.has_ended(pipes.both, AT_ONCE)
    os.write(pipes.tell, b"0")
    assert moment.has_ended(pipes.both, AT_ONCE)
    os.write(pipes.say, b"hello")
    assert not moment.has_ended(pipes.both, AT_ONCE)


def test_a_word_alone_is_no_end_nor_is_a_signal(signals: Signals, pipes: Pipes) -> None:
    moment = Moment(signals)  # type: ignore[arg-type]
    os.write(pipes.say, b"hello")
    assert not moment.has_ended(pipes.both, AT_ONCE)
    os.read(pipes.said, 100)
    os.write(pipes.tell, b"0")
    os.write(signals.ring, b"\0")
    assert not moment.has_ended(pipes.both, AT_ONCE)


def test_a_signal_may_be_the_end(signals: Signals, pipes: Pipes) -> None:
    moment = Moment(signals)  # type: ignore[arg-type]
    os.write(signals.ring, b"\0")
    assert moment.has_ended((signals.wake, pipes.said), AT_ONCE)
    os.read(signals.wake, 100)
    assert moment.is_silent()
    os.write(pipes.say, b"the last word")
    assert not moment.is_silent()


def test_from_one_to_the_next_only_what_is_asked_for_is_looked_at(signals: Signals, pipes: Pipes) -> None:
    moment, others = Moment(signals), Pipes()  # type: ignore[arg-type]
    os.write(others.say, b"not for us")
    assert not moment.has_ended(others.both, AT_ONCE)
    os.write(pipes.tell, b"0")
    assert moment.has_ended(pipes.both, AT_ONCE)
    assert not moment.has_ended((signals.wake, others.said), AT_ONCE)
    os.write(signals.ring, b"\0")
    assert not moment.has_ended(pipes.both, AT_ONCE)
    others.close()
