"""The state store for administration: tokens, the audit trail, shared settings, limits, controls and pruning.

Every sentence of a docstring is a test in tests/conformance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from ork.model.ids import RunId
from ork.model.installation import Control, SharedSettings
from ork.model.workflow import Rate
from ork.state.reading import StateReader
from ork.state.records import NO_RATES

if TYPE_CHECKING:
    from ork.model.access import AuditEntry, Token


class AdminStore(StateReader, Protocol):
    # ── tokens: writing them wakes nobody ────────────────────────────────────────────────────────

    async def add_token(self, token: Token) -> None:
        """The token is durable. A digest or id that exists already is RefusedError."""
        ...

    async def find_token(self, digest: str) -> Token | None:
        """Also one that has been revoked: it says so."""
        ...

    async def list_tokens(self) -> tuple[Token, ...]:
        """Oldest first, revoked ones included."""
        ...

    async def live_tokens(self, digests: frozenset[str], now: datetime) -> frozenset[str]:
        """Those of the digests whose tokens are neither revoked nor expired. One request, however many."""
        ...

    async def revoke_token(self, id: str, now: datetime) -> bool:
        """False if there is no such token or it has been revoked before."""
        ...

    async def rotate_token(self, id: str, successor: Token, until: datetime, now: datetime) -> bool:
        """Adds the successor and lets the token expire at `until`, or earlier if it was to; both or neither.

        False if there is no such token that is neither revoked nor expired. A digest or id of the successor that exists
        already is RefusedError.
        """
        ...

    async def mark_token_used(self, id: str, now: datetime) -> None:
        """The token's `last_used_at` is at least `now`."""
        ...

    # ── audit: writing it wakes nobody ───────────────────────────────────────────────────────────

    async def record(self, entry: AuditEntry, keep: int | None = None) -> None:
        """The entry is durable, and its id sorts behind those of all before it. With `keep`, only that many of the newest entries with
        the same action stay."""
        ...

    async def list_audit(self, limit: int = 50, before: str | None = None) -> tuple[AuditEntry, ...]:
        """Newest first; `before` is the id of the last entry of the previous page."""
        ...

    # ── settings that all schedulers share ───────────────────────────────────────────────────────

    async def read_shared_settings(self) -> SharedSettings | None:
        """None until somebody has recorded them."""
        ...

    async def record_shared_settings(self, settings: SharedSettings) -> SharedSettings:
        """Records them if none are recorded. Returns those that are: of any number of callers, one decides."""
        ...

    async def replace_shared_settings(self, settings: SharedSettings, *, force: bool = False) -> None:
        """Records them in place of others. RefusedError while an attempt is active, unless `force` is given.

        Every scheduler loses its lease and its runs, so each has to register again and is compared then.
        """
        ...

    async def set_limits(self, limits: Mapping[str, int], rates: Mapping[str, Rate] = NO_RATES) -> None:
        """These limits and rates (of "pool:NAME") hold from the next commit on, and no others.

        Running attempts are not touched, and how much of a rate is used up stays known. Where they hold already,
        nothing is written and nobody is woken.
        """
        ...

    # ── pausing and draining schedulers ──────────────────────────────────────────────────────────

    async def set_control(self, control: Control) -> None:
        """It holds from now on, in place of another one for the same target, and schedulers are woken."""
        ...

    async def clear_control(self, target: str) -> bool:
        """There is no control for this target any more, and schedulers are woken. False if there was none."""
        ...

    # ── pruning ──────────────────────────────────────────────────────────────────────────────────

    async def prunable_runs(self, before: datetime, limit: int, keep_last: int = 0) -> tuple[RunId, ...]:
        """Up to `limit` runs that ended before that moment, oldest first. Runs that have an owner, or a command
        waiting, and the newest `keep_last` of each workflow are none of them."""
        ...

    async def prune(self, before: datetime, limit: int, keep_last: int = 0) -> tuple[RunId, ...]:
        """Those runs and everything about them are forgotten, and notices of that age that belong to no run and are done
        with, in one small transaction. The runs' objects are the caller's to delete: the same transaction notes them as
        leftovers, so that a caller who dies loses none."""
        ...

    async def leftovers(self, limit: int) -> tuple[RunId, ...]:
        """Up to `limit` forgotten runs whose objects nobody has said to be gone, by id."""
        ...

    async def swept(self, runs: Sequence[RunId]) -> None:
        """The objects of these runs are gone: they are leftovers no more."""
        ...
