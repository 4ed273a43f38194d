"""The pipes of commands, from one to the next."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ork.worker import process, streams


@pytest.fixture(autouse=True)
def none_are_kept() -> Iterator[None]:
    yield
    streams.taken().close()


def test_those_that_were_kept_are_taken_by_the_next_and_by_no_other() -> None:
    first = streams.taken()
    streams.keep(first)
    again, another = streams.taken(), streams.taken()
    assert again is first
    assert not set(another.all()) & set(first.all())
    again.close()
    another.close()


def test_only_those_that_nobody_uses_are_closed_in_a_forked_process() -> None:
    pipes = streams.taken()
    assert not process.private & set(pipes.all())
    streams.keep(pipes)
    assert process.private >= set(pipes.all())
    assert streams.taken() is pipes
    assert not process.private & set(pipes.all())
    pipes.close()


def test_one_is_kept() -> None:
    first, second = streams.taken(), streams.taken()
    streams.keep(first)
    streams.keep(second)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(first.said)
    assert not process.private & set(first.all())
    assert streams.taken() is second
    second.close()
