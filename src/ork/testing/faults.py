"""Faults, their rates and times. Rates are drawn once per seed, so that seeds differ in kind and not only in luck."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from ork.errors import ObjectsError, StoreUnavailableError
from ork.model.record import Record
from ork.testing.clock import FakeClock
from ork.testing.kernel import Crashed, Kernel, Signal

STILL_SECONDS = 2.0  # time until a process continues after its machine does
LONGEST_LAG = 2.0  # seconds until an object is visible to all; the grace before the last look must be longer


class FaultRates(Record):
    """Probabilities per event (an I/O, a worker, a callback) and windows per world."""

    crash: float = 0.0
    pause: float = 0.0
    error_before: float = 0.0
    error_after: float = 0.0
    object_error: float = 0.0
    stall: float = 0.0
    lag: float = 0.0
    lost_news: float = 0.0
    doubled_news: float = 0.0
    slow_start: float = 0.0
    forgotten: float = 0.0
    unreachable: float = 0.0
    start_error: float = 0.0
    worker_death: float = 0.0
    worker_silence: float = 0.0
    worker_babble: float = 0.0  # a signed status with meaningless content
    garbled_gate: float = 0.0  # a gate that was won, and cannot be read
    mistaken_status: float = 0.0  # a signed status with another attempt's key
    late_write: float = 0.0  # a write that takes effect after its caller has given up
    lock_wait: float = 0.0  # a write that waits for the store's lock while others write
    clock_skew: float = 0.0
    meddling: float = 0.0  # a user sends a command just when an attempt ends
    outages: int = 0
    full_disks: int = 0
    partitions: int = 0
    reboots: int = 0
    freezes: int = 0  # of machines, which continue later
    damages: int = 0  # rows of runs that can no longer be read
    vanishings: int = 0  # machines that disappear for ever, with everything on them
    clean_stops: int = 0
    controls: int = 0  # pauses and drains of schedulers
    forgeries: int = 0


def draw_rates(random: Random, orders: Random | None) -> FaultRates:
    """Each fault is independently absent, rare or frequent, so some worlds have only one kind of fault.

    `orders` draws the controls, apart from the rest: a world without them is otherwise the same.
    """

    def rate(frequent: float) -> float:
        return random.choice((0.0, frequent / 5, frequent))

    def windows(most: int) -> int:
        return random.choice((0, random.randint(1, most)))

    return FaultRates(
        crash=rate(0.015), pause=rate(0.02), error_before=rate(0.05), error_after=rate(0.05),
        object_error=rate(0.02), stall=rate(0.003), lag=rate(0.5), lost_news=rate(0.5), doubled_news=rate(0.3),
        slow_start=rate(0.3), forgotten=rate(0.3), unreachable=rate(0.2), start_error=rate(0.1),
        worker_death=rate(0.25), worker_silence=rate(0.25), worker_babble=rate(0.1), clock_skew=rate(1.0),
        outages=windows(2), full_disks=windows(1), partitions=windows(2), reboots=windows(2), clean_stops=windows(2),
        forgeries=windows(6), meddling=rate(0.2), garbled_gate=rate(0.1), mistaken_status=rate(0.2),
        vanishings=windows(1), damages=random.choice((0, 0, 0, 1)), freezes=windows(2), late_write=rate(0.03), lock_wait=rate(0.05),
        controls=0 if orders is None else orders.choice((0, 0, 0, orders.randint(1, 4))),
    )  # fmt: skip


class Faults:
    """Decides for each event whether a fault occurs. After `heal` none does."""

    def __init__(self, seed: int, kernel: Kernel, rates: FaultRates) -> None:
        self.rates = rates
        self.random = Random(f"faults {seed}")
        self.healed = False
        self.late_writes = 0  # writes that have not taken effect yet
        self._kernel = kernel
        self._outages: Sequence[tuple[float, float]] = ()
        self._full_disks: Sequence[tuple[float, float]] = ()
        self._partitions: Sequence[tuple[float, float]] = ()

    def plan_windows(self, length: float) -> None:
        """Draw when the store is down, the disk is full and machines are unreachable, within the first `length` seconds."""
        self._outages = [self._window(length, 1.0, 90.0) for _ in range(self.rates.outages)]
        self._full_disks = [self._window(length, 5.0, 120.0) for _ in range(self.rates.full_disks)]
        self._partitions = [self._window(length, 10.0, 250.0) for _ in range(self.rates.partitions)]

    def heal(self) -> None:
        self.healed = True

    def happens(self, rate: float) -> bool:
        return rate > 0 and not self.healed and self.random.random() < rate

    def store_is_down(self) -> bool:
        return self._within(self._outages)

    def disk_is_full(self) -> bool:
        return self._within(self._full_disks)

    def machines_are_cut_off(self) -> bool:
        return self._within(self._partitions)

    def _within(self, windows: Sequence[tuple[float, float]]) -> bool:
        return not self.healed and any(start <= self._kernel.time < end for start, end in windows)

    def _window(self, length: float, least: float, most: float) -> tuple[float, float]:
        start = self.random.uniform(0, length)
        return start, start + self.random.uniform(least, most)


class SimulatedProcess:
    """One process of a scheduler: its clock, its death, and the faults around every I/O. `stands_still` returns whether its
    machine is suspended."""

    def __init__(
        self, name: str, kernel: Kernel, faults: Faults, stands_still: Callable[[], bool] = lambda: False
    ) -> None:
        self._stands_still = stands_still
        self.name = name
        self.kernel = kernel
        self.faults = faults
        self.clock = FakeClock(elapsed=kernel.now)
        self.wakeup = Signal(kernel)
        self.is_dead = False
        if faults.happens(faults.rates.clock_skew):
            self.clock.jump(faults.random.uniform(-30, 30))

    async def before_io(self, *, writes: bool) -> None:
        """Some time passes, or the process dies, is suspended, or gets a store error."""
        await self._stumble()
        faults = self.faults
        if faults.store_is_down() or (writes and faults.disk_is_full()):
            await self.kernel.pause(faults.random.uniform(0.0, 2.0))
            raise StoreUnavailableError("the store is out of reach")
        if faults.happens(faults.rates.error_before):
            raise StoreUnavailableError("the store failed before it did anything")

    async def after_io(self) -> None:
        """The operation was done, but the caller may get an error."""
        await self._stumble()
        if self.faults.happens(self.faults.rates.error_after):
            raise StoreUnavailableError("the store did it and the answer was lost")

    def around_object_io(self) -> None:
        """Synchronous code cannot wait, but it can be suspended while others continue."""
        faults = self.faults
        self.check_alive()
        while self._stands_still():
            self.kernel.stall(STILL_SECONDS)
            self.check_alive()
        if faults.happens(faults.rates.crash / 2):
            self.die()
        if faults.happens(faults.rates.stall):
            self.kernel.stall(faults.random.uniform(5, 150))
            self.check_alive()

    def object_error(self, *, writes: bool) -> None:
        if writes and self.faults.disk_is_full():
            raise ObjectsError("no space left on device")
        if self.faults.happens(self.faults.rates.object_error):
            raise ObjectsError("the object store did not answer")

    async def stumble_in_executor(self) -> None:
        await self._stumble()

    def check_alive(self) -> None:
        if self.is_dead:
            raise Crashed

    def die(self) -> None:
        self.is_dead = True
        raise Crashed

    async def _stumble(self) -> None:
        faults = self.faults
        self.check_alive()
        while self._stands_still():
            await self.kernel.pause(STILL_SECONDS)
            self.check_alive()
        if faults.happens(faults.rates.crash):
            self.die()
        if faults.happens(faults.rates.pause):
            await self.kernel.pause(faults.random.uniform(5, 150))
            if faults.happens(faults.rates.clock_skew / 5):
                self.clock.jump(faults.random.uniform(-100, 100))
        else:
            await self.kernel.pause(faults.random.uniform(0.0, 0.004))
        self.check_alive()
