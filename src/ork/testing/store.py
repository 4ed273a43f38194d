"""One process's view of the state store: slow, sometimes unavailable, and with lost responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ork.errors import StoreUnavailableError
from ork.state.store import StateStore
from ork.testing.faults import SimulatedProcess

# Not `list_attempts` and `over_budget_at`: the owner of a run sees all that was committed (see `StateReader`).
READS = frozenset(
    [
        "get_version",
        "get_workflow",
        "list_workflows",
        "get_run",
        "find_runs",
        "find_scheduled",
        "shorten_ids",
        "list_runs",
        "last_runs",
        "param_values",
        "run_updates",
        "find_cached",
        "list_schedulers",
        "get_owner",
        "get_key",
        "pending_commands",
        "limit_use",
        "list_schedules",
        "due_schedules",
        "next_fire_at",
        "look_ahead",
    ]
)
# Calls that may take effect after their caller got an error, as in a network partition.
LATE = frozenset(["commit", "create_runs", "submit_command", "fire", "renew", "set_control", "clear_control"])
# Reads whose arguments contain the current time: a stale response is the last one for any time.
OF_NOW = frozenset(["due_schedules"])
LATEST_SECONDS = 30.0
Seen = Callable[..., None]


class LaggingStore:
    """A store with every verb of the contract, and faults before and after each. Reads may be as old as the last
    response.

    `witness` may have a method per verb: it is called with the result and the arguments when a call takes effect, even
    if the caller never gets the result. `on_write` is called after each write, to wake others.
    """

    def __init__(
        self,
        store: StateStore,
        process: SimulatedProcess,
        witness: object,
        on_write: Callable[[SimulatedProcess], Awaitable[None]],
    ) -> None:
        self._store = store
        self._process = process
        self._witness = witness
        self._on_write = on_write
        self._last_read: dict[tuple[str, str], Any] = {}

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        if verb.startswith("_"):
            raise AttributeError(verb)
        call = getattr(self._store, verb)

        async def answer(*args: Any, **kwargs: Any) -> Any:
            if verb in READS:
                return await self._read(verb, call, args, kwargs)
            return await self._write(verb, call, args, kwargs)

        self.__dict__[verb] = answer
        return answer

    async def _read(self, verb: str, call: Callable[..., Awaitable[Any]], args: Any, kwargs: Any) -> Any:
        await self._before_read()
        what = (verb, "" if verb in OF_NOW else repr((args, kwargs)))
        faults = self._process.faults
        if what not in self._last_read or not faults.happens(faults.rates.lag):
            self._last_read[what] = await call(*args, **kwargs)
        return self._last_read[what]

    async def _before_read(self) -> None:
        await self._process.before_io(writes=False)

    async def _write(self, verb: str, call: Callable[..., Awaitable[Any]], args: Any, kwargs: Any) -> Any:
        await self._process.before_io(writes=verb != "signing_key")
        faults = self._process.faults
        if verb in LATE and faults.happens(faults.rates.late_write):
            self._take_effect_later(verb, call, args, kwargs)
            raise StoreUnavailableError("the store did not answer in time")
        answer = await self._take_effect(verb, call, args, kwargs)
        await self._process.after_io()
        return answer

    def _take_effect_later(self, verb: str, call: Callable[..., Awaitable[Any]], args: Any, kwargs: Any) -> None:
        """The caller gets an error, but its request takes effect later."""

        async def arrive() -> None:
            try:
                await self._take_effect(verb, call, args, kwargs)
            finally:
                self._process.faults.late_writes -= 1

        faults, kernel = self._process.faults, self._process.kernel
        faults.late_writes += 1
        kernel.spawn(f"late {verb}", arrive(), faults.random.uniform(0.0, LATEST_SECONDS))

    async def _take_effect(self, verb: str, call: Callable[..., Awaitable[Any]], args: Any, kwargs: Any) -> Any:
        answer = await call(*args, **kwargs)
        on_call: Seen | None = getattr(self._witness, verb, None)
        if on_call is not None:
            on_call(answer, *args, **kwargs)
        await self._on_write(self._process)
        return answer
