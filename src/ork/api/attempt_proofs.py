"""Verifies the proofs of attempts, which workers make with the attempt's token. The token itself is never sent."""

from __future__ import annotations

import hmac
import re
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

from ork.model.ids import NAME_PATTERN, AttemptKey, RunId, TaskKey
from ork.model.location import is_parse
from ork.model.task import Attempt, AttemptStatus
from ork.objects.documents import derive_token, objects_proof, token_hash, wake_proof

# After the end, a worker may still repeat an unacknowledged final status and send the rest of its log.
GRACE = timedelta(seconds=60)
# How long a row is cached, so that not every document costs a statement.
ROW_SECONDS = 2.0
ROWS_KEPT = 4096
_ATTEMPT = re.compile(rf"(?P<run>[0-9a-z]{{1,40}})/(?P<task>{NAME_PATTERN})/(?P<index>\d{{1,9}})/(?P<number>\d{{1,6}})")


class AttemptRows(Protocol):
    """The part of the store that this needs."""

    async def list_attempts(self, run: RunId, task: TaskKey | None = None) -> tuple[Attempt, ...]: ...

    async def signing_key(self) -> bytes: ...


class AttemptProofs:
    def __init__(self, rows: AttemptRows, monotonic: Callable[[], float]) -> None:
        self._rows = rows
        self._monotonic = monotonic
        self._read: OrderedDict[str, tuple[float, list[Attempt]]] = OrderedDict()

    async def can_wake(self, named: str, proof: str) -> bool:
        """True if this is the proof with which the attempt wakes its scheduler."""
        for key in _keys(named):
            rows = await self._rows_of(named, key)
            if _fitting(rows, proof, lambda each: wake_proof(named, each.token_hash)) is not None:
                return True
        return False

    async def signed_in(self, named: str, proof: str) -> Attempt | None:
        """The attempt, if this is the proof that opens its documents. Its row may be slightly outdated."""
        kept_at, found = self._read.get(named, (0.0, []))
        if not found or self._monotonic() - kept_at > ROW_SECONDS:
            found = await self._find(named)
            self._keep(named, found)
        return _fitting(found, proof, lambda each: objects_proof(named, each.token_hash))

    def has_ended(self, attempt: Attempt) -> bool:
        """True if the attempt has ended and its grace period has passed."""
        if not attempt.status.is_final:
            return False
        return attempt.finished_at is None or datetime.now(UTC) > attempt.finished_at + GRACE

    async def _find(self, named: str) -> list[Attempt]:
        """The rows that the name may refer to: at most two. One that parses an image is in no store; its token is derived from the
        installation's key."""
        run, task, *_ = named.split("/")
        if is_parse(run, task) and _keys(named):
            secret = token_hash(derive_token(await self._rows.signing_key(), named))
            key = AttemptKey(RunId(run), TaskKey(task), int(named.rpartition("/")[2]))
            return [Attempt(key, AttemptStatus.RUNNING, "", "", secret, datetime.now(UTC))]
        return [row for key in _keys(named) for row in await self._rows_of(named, key)]

    async def _rows_of(self, named: str, key: TaskKey) -> list[Attempt]:
        run, number = RunId(named.partition("/")[0]), int(named.rpartition("/")[2])
        return [each for each in await self._rows.list_attempts(run, key) if each.key.number == number]

    def _keep(self, named: str, found: list[Attempt]) -> None:
        self._read.pop(named, None)
        if found:
            self._read[named] = self._monotonic(), found
        while len(self._read) > ROWS_KEPT:
            self._read.popitem(last=False)


def _keys(named: str) -> list[TaskKey]:
    """The tasks that the name may refer to. A task without instances has index 0, as in the names of its documents."""
    found = _ATTEMPT.fullmatch(named)
    if found is None:
        return []
    name, index = found["task"], int(found["index"])
    return [*([TaskKey(name)] if index == 0 else []), TaskKey(name, index)]


def _fitting(rows: list[Attempt], proof: str, make: Callable[[Attempt], str]) -> Attempt | None:
    if not proof.isascii():
        return None
    return next((each for each in rows if hmac.compare_digest(make(each), proof)), None)
