"""Virtual time: what awaits, when, and in which order."""

from __future__ import annotations

import pytest

from ork.testing.kernel import Crashed, Kernel, Signal


def test_a_day_passes_at_once() -> None:
    kernel = Kernel(0)
    moments = []

    async def sleeper() -> None:
        await kernel.pause(86_400)
        moments.append(kernel.time)

    kernel.spawn("sleeper", sleeper())
    kernel.run(100_000)
    assert moments == [86_400]
    assert kernel.time == 100_000


def test_actors_take_turns_in_the_order_of_their_moments() -> None:
    kernel = Kernel(0)
    seen: list[str] = []

    async def actor(name: str, seconds: float) -> None:
        for _ in range(2):
            await kernel.pause(seconds)
            seen.append(name)

    kernel.spawn("slow", actor("slow", 10))
    kernel.spawn("fast", actor("fast", 1))
    kernel.run(100)
    assert seen == ["fast", "fast", "slow", "slow"]


def order_of_equals(seed: int) -> str:
    kernel = Kernel(seed)
    seen: list[str] = []
    for name in "abcdef":
        kernel.later(1.0, lambda name=name: seen.append(name))  # type: ignore[misc]
    kernel.run(2.0)
    return "".join(seen)


def test_the_seed_decides_who_is_first_at_the_same_moment() -> None:
    assert order_of_equals(1) == order_of_equals(1)
    assert len({order_of_equals(seed) for seed in range(20)}) > 5


def test_a_signal_wakes_whoever_waits_for_it() -> None:
    kernel = Kernel(0)
    signal = Signal(kernel)
    heard: list[tuple[float, bool]] = []

    async def listener() -> None:
        for seconds in (None, 5.0):
            happened = await signal.wait(seconds)
            heard.append((kernel.time, happened))

    kernel.spawn("listener", listener())
    kernel.later(3.0, signal.set)
    kernel.run(100)
    assert heard == [(3.0, True), (8.0, False)]


def test_a_signal_set_before_the_wait_is_not_missed() -> None:
    kernel = Kernel(0)
    signal = Signal(kernel)
    heard: list[bool] = []

    async def listener() -> None:
        heard.append(await signal.wait(None))

    signal.set()
    kernel.spawn("listener", listener())
    kernel.run(1)
    assert heard == [True]


def test_a_killed_actor_does_nothing_more() -> None:
    kernel = Kernel(0)
    seen: list[str] = []

    async def victim() -> None:
        try:
            await kernel.pause(10)
            seen.append("went on")
        finally:
            await kernel.pause(1)
            seen.append("cleaned up")

    actor = kernel.spawn("victim", victim())
    kernel.later(5.0, lambda: kernel.kill(actor))
    kernel.run(100)
    assert actor.done
    assert seen == []


def test_a_crash_ends_its_actor_alone() -> None:
    kernel = Kernel(0)
    seen: list[str] = []

    async def crashing() -> None:
        raise Crashed

    async def other() -> None:
        await kernel.pause(1)
        seen.append("lives")

    kernel.spawn("crashing", crashing())
    kernel.spawn("other", other())
    kernel.run(10)
    assert seen == ["lives"]


def test_others_go_on_while_one_stands_still_in_plain_code() -> None:
    kernel = Kernel(0)
    seen: list[tuple[str, float]] = []

    async def plain() -> None:
        kernel.stall(50)
        seen.append(("plain", kernel.time))

    async def other() -> None:
        await kernel.pause(10)
        seen.append(("other", kernel.time))

    kernel.spawn("plain", plain())
    kernel.spawn("other", other())
    kernel.run(100)
    assert seen == [("other", 10.0), ("plain", 50.0)]


def test_an_actor_killed_while_it_stands_still_does_not_go_on() -> None:
    kernel = Kernel(0)
    seen: list[str] = []

    async def plain() -> None:
        kernel.stall(50)
        seen.append("went on")

    actor = kernel.spawn("plain", plain())
    kernel.later(10.0, lambda: kernel.kill(actor))
    kernel.run(100)
    assert seen == []


def test_only_an_actor_can_stand_still() -> None:
    with pytest.raises(RuntimeError, match="actor"):
        Kernel(0).stall(1)
