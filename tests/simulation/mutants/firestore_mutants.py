"""The Firestore store, broken on purpose (see `tests.simulation.mutants.mutations`): preconditions left out, lost answers mistaken.

What matters only in rare races (preconditions on leases and `max_active_runs`, names of large rows) has tests of its own:
tests/unit/state/test_firestore_races.py.
"""

from __future__ import annotations

from typing import Any

from ork.state.firestore import commit, database, failures
from ork.state.firestore.failures import ConflictError, UnansweredError
from ork.state.firestore.wire import Put
from tests.simulation.mutants.mutations import Make, Mutant


def _without_time(collection: str) -> Make:
    """Documents of this collection are written whatever others have written to them since they were read. What only verifies that
    a document is as it was goes on doing so."""

    def make(original: Any) -> Any:
        def marked(put: Put, nonce: str) -> Put:
            is_timed = put.guard is not None and not isinstance(put.guard, bool)
            is_timed = is_timed and put.path.startswith(collection) and put.mask != []
            return original(put._replace(guard=None) if is_timed else put, nonce)  # type: ignore[no-any-return]

        return marked

    return make


def _created_anyway(original: Any) -> Any:
    def marked(put: Put, nonce: str) -> Put:
        return original(put._replace(guard=None) if put.guard is False else put, nonce)  # type: ignore[no-any-return]

    return marked


def _unanswered_is_refused(original: Any) -> Any:
    def commit_error(error: BaseException) -> BaseException:
        found = original(error)
        return ConflictError(str(found)) if isinstance(found, UnansweredError) else found

    return commit_error


def _unanswered_is_written(_original: Any) -> Any:
    async def change(self: Any, decide: Any, *, is_repeatable: bool = True) -> Any:
        for number in range(40):
            plan = await decide()
            try:
                for put in plan.before:
                    await self.wire.commit([put])
                times = await self.wire.commit(plan.puts) if plan.puts else []
            except ConflictError:
                self.forget()
                await self.wire.pause(number)
                continue
            except UnansweredError:
                self.forget()
                return plan.answer
            if plan.puts and plan.written is not None:
                plan.written(times)
            return plan.answer
        raise TimeoutError

    return change


def _unguarded(name: str, breaks: str, collection: str) -> Mutant:
    return Mutant(name, breaks, ((database, "_marked", _without_time(collection)),), "firestore")


def _one_slot_less(original: Any) -> Any:
    """A limit is full while it has one slot left."""

    def room_of_all(*args: Any) -> dict[str, int]:
        return {name: room - 1 if room == 1 else room for name, room in original(*args).items()}

    return room_of_all


FIRESTORE_MUTANTS = (
    _unguarded("firestore-run-unguarded", "a run's document is written over what others have written", "runs/"),
    _unguarded("firestore-account-unguarded", "an account is written without its precondition", "accounts/"),
    _unguarded("firestore-rate-unguarded", "a rate's bucket is written without its precondition", "rates/"),
    Mutant(
        "firestore-free-slot-refused",
        "the last slot of a limit is given to nobody",
        ((commit, "room_of_all", _one_slot_less),),
        "firestore",
    ),
    Mutant(
        "firestore-created-twice",
        "a document that must be new is written over one that is there",
        ((database, "_marked", _created_anyway),),
        "firestore",
    ),
    Mutant(
        "firestore-unanswered-is-refused",
        "a commit without an answer is taken for one that was not carried out",
        ((failures, "commit_error", _unanswered_is_refused),),
        "firestore",
    ),
    Mutant(
        "firestore-unanswered-is-written",
        "a commit without an answer is taken for one that was carried out",
        ((database.Database, "change", _unanswered_is_written),),
        "firestore",
    ),
)
