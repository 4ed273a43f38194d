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
    # ── tokens: writes wake no scheduler ─────────────────────────────────────────────────────────

    async def add_token(self, token: Token) -> None:
        """Store the token durably. RefusedError if its digest or id exists already."""
        ...

    async def find_token(self, digest: str) -> Token | None:
        """The token with this digest, even if it is revoked."""
        ...

    async def list_tokens(self) -> tuple[Token, ...]:
        """All tokens, oldest first, including revoked ones."""
        ...

    async def live_tokens(self, digests: frozenset[str], now: datetime) -> frozenset[str]:
        """The digests whose tokens are neither revoked nor expired. One request for any number of digests."""
        ...

    async def revoke_token(self, id: str, now: datetime) -> bool:
        """Revoke the token. False if it does not exist or was revoked before."""
        ...

    async def rotate_token(self, id: str, successor: Token, until: datetime, now: datetime) -> bool:
        """Add the successor and let the token expire at `until`, or at its own expiry if that is earlier; both or
        neither.

        False if the token does not exist, is revoked or has expired. RefusedError if the digest or id of the successor
        exists already.
        """
        ...

    async def mark_token_used(self, id: str, now: datetime) -> None:
        """Set the token's `last_used_at` to `now`, unless it is later already."""
        ...

    async def forget_tokens(self, name: str, before: datetime) -> int:
        """Delete the tokens of this name that expired before that time. Returns how many."""
        ...

    async def use_once(self, key: str, until: datetime, now: datetime) -> bool:
        """Record durably that the key is used. Of concurrent callers one gets True; a key that is recorded gives False.
        Keys whose `until` has passed are deleted."""
        ...

    # ── notes: writes wake no scheduler ──────────────────────────────────────────────────────────

    async def read_note(self, name: str) -> str | None:
        """The text that a process has left for the others under this name."""
        ...

    async def swap_note(self, name: str, before: str | None, after: str) -> bool:
        """Replace the note durably. False if it is not `before` any more (None: if there is one)."""
        ...

    # ── audit: writes wake no scheduler ──────────────────────────────────────────────────────────

    async def record(self, entry: AuditEntry, keep: int | None = None) -> None:
        """Store the entry durably, with an id that sorts after all earlier ones. With `keep`, only that many of the
        newest entries with the same action are kept."""
        ...

    async def list_audit(self, limit: int = 50, before: str | None = None) -> tuple[AuditEntry, ...]:
        """Audit entries, newest first; `before` is the id of the last entry of the previous page."""
        ...

    # ── settings that all schedulers share ───────────────────────────────────────────────────────

    async def read_shared_settings(self) -> SharedSettings | None:
        """The recorded settings; None until they are recorded."""
        ...

    async def record_shared_settings(self, settings: SharedSettings) -> SharedSettings:
        """Record the settings unless some are recorded already, and return the recorded ones. Of concurrent callers one
        wins."""
        ...

    async def replace_shared_settings(self, settings: SharedSettings, *, force: bool = False) -> None:
        """Replace the recorded settings. RefusedError while an attempt is active, unless `force` is given.

        All schedulers lose their leases and runs. Each has to register again, and its settings are checked then.
        """
        ...

    async def set_limits(self, limits: Mapping[str, int], rates: Mapping[str, Rate] = NO_RATES) -> None:
        """Replace all limits and rates (named "pool:NAME"), from the next commit on.

        Running attempts are not affected, and starts already counted against a rate stay counted. If nothing changes,
        nothing is written and no one is woken.
        """
        ...

    # ── pausing and draining schedulers ──────────────────────────────────────────────────────────

    async def set_control(self, control: Control) -> None:
        """Set the control, replacing one for the same target, and wake schedulers."""
        ...

    async def clear_control(self, target: str) -> bool:
        """Remove the control for this target and wake schedulers. False if there was none."""
        ...

    # ── pruning ──────────────────────────────────────────────────────────────────────────────────

    async def prunable_runs(self, before: datetime, limit: int, keep_last: int = 0) -> tuple[RunId, ...]:
        """Up to `limit` runs that ended before that time, oldest first. Without runs that have an owner or a pending
        command, and without the newest `keep_last` of each workflow."""
        ...

    async def prune(self, before: datetime, limit: int, keep_last: int = 0) -> tuple[RunId, ...]:
        """Delete those runs with all their rows, and finished notices of that age without a run, in one small
        transaction. The caller deletes the runs' objects. The same transaction records the runs as leftovers, so that
        they are not lost if the caller dies."""
        ...

    async def leftovers(self, limit: int) -> tuple[RunId, ...]:
        """Up to `limit` pruned runs whose objects have not been reported as deleted, by id."""
        ...

    async def swept(self, runs: Sequence[RunId]) -> None:
        """Remove runs from the leftovers, because their objects are deleted."""
        ...
