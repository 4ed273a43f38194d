"""Mutants of what is promised for machines that vanish, or stand still and wake up later."""

from __future__ import annotations

from typing import Any

from ork.core import retry
from ork.model.record import replaced
from ork.model.workflow import OnUnreachable
from ork.scheduler import unreachable
from ork.state.sqlite.store import SqliteStore
from tests.simulation.mutants.mutations import Mutant, always


def without_fence_time(original: Any) -> Any:
    def over_after(task: Any, attempt: Any, executor: Any, objects: Any, options: Any) -> Any:
        limit = original(task, attempt, executor, objects, options)
        return None if limit is None else options.liveness.stale_seconds

    return over_after


def retry_always(original: Any) -> Any:
    return lambda task, *rest: original(replaced(task, on_unreachable=OnUnreachable.RETRY), *rest)


def note_nothing(_original: Any) -> Any:
    async def note_heartbeats(_self: Any, _heartbeats: Any) -> None:
        return

    return note_heartbeats


MACHINE_MUTANTS = (
    Mutant(
        "no-fence-time",
        "an unreachable attempt is over at the stale limit, while its worker may still work",
        ((unreachable, "over_after", without_fence_time),),
    ),
    Mutant(
        "never-over", "an unreachable attempt is waited for without end", ((unreachable, "over_after", always(None)),)
    ),
    Mutant("wait-not-heeded", "`on_unreachable: wait` is not heeded", ((unreachable, "over_after", retry_always),)),
    Mutant("fail-not-heeded", "`on_unreachable: fail` is not heeded", ((retry, "unreachable", retry_always),)),
    Mutant(
        "silence-not-noted",
        "every owner counts a worker's silence from its own beginning",
        ((SqliteStore, "note_heartbeats", note_nothing),),
    ),
)
