"""The store's verbs for what belongs to the installation as a whole. Every sentence below is a test in tests/conformance."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Protocol

from ork.errors import RefusedError, SettingsDifferError, StoreError
from ork.model.ids import RunId
from ork.model.installation import Control, SharedSettings


class InstallationVerbs(Protocol):
    # ── what all schedulers share ────────────────────────────────────────────────────────────────

    async def read_shared_settings(self) -> SharedSettings | None:
        """None until somebody has recorded them."""
        ...

    async def record_shared_settings(self, settings: SharedSettings) -> SharedSettings:
        """Records them if none are recorded. Returns those that are: of any number of callers, one decides."""
        ...

    async def replace_shared_settings(self, settings: SharedSettings, *, force: bool = False) -> None:
        """Records them in place of others. RefusedError while an attempt is active, unless `force` is given.

        Every scheduler loses its lease and its runs, so each has to introduce itself again and is compared then.
        """
        ...

    # ── pausing and draining schedulers ──────────────────────────────────────────────────────────

    async def set_control(self, control: Control) -> None:
        """It stands from now on, in place of another one for the same target, and schedulers are woken."""
        ...

    async def clear_control(self, target: str) -> bool:
        """Nothing stands for this target any more, and schedulers are woken. False if nothing did."""
        ...

    async def list_controls(self) -> tuple[Control, ...]:
        """By target."""
        ...

    # ── whether there is anything to do ──────────────────────────────────────────────────────────

    async def needs_owner(self) -> bool:
        """Whether there is a run that needs an owner, or has one."""
        ...

    async def runs_with_commands(self) -> tuple[RunId, ...]:
        """Those of which a person asked something that is not done, by id."""
        ...


def attempts_are_active(number: int) -> RefusedError:
    some = "1 attempt is" if number == 1 else f"{number} attempts are"
    return RefusedError(
        f"{some} active, and other schedulers or another object store could start work a second time.",
        hint="pause the installation and wait for what runs, or cancel it: ork status",
    )


def check_terms(recorded: SharedSettings | None, terms: str | None) -> None:
    """SettingsDifferError if a scheduler with these terms must not work here."""
    if terms is not None and recorded is not None and recorded.terms != terms:
        raise settings_differ()


def settings_differ() -> SettingsDifferError:
    return SettingsDifferError(
        "The installation's shared settings are not those of this scheduler.",
        hint="compare them: ork db settings",
    )


def settings_text(settings: SharedSettings) -> str:
    """As stored. `terms` is written out so that SQL can compare it."""
    return json.dumps(
        {
            "terms": settings.terms,
            "objects": settings.objects,
            "heartbeat_seconds": settings.heartbeat_seconds,
            "stale_seconds": settings.stale_seconds,
            "objects_url": settings.objects_url,
            "host": settings.host,
            "recorded_at": settings.recorded_at.isoformat(),
        }
    )


def settings_of(data: bytes) -> SharedSettings:
    """StoreError if what is stored makes no sense: without it, nobody can tell whether starting work is safe."""
    try:
        fields: dict[str, Any] = json.loads(data)
        return SharedSettings(
            str(fields["objects"]),
            float(fields["heartbeat_seconds"]),
            float(fields["stale_seconds"]),
            str(fields["objects_url"]),
            str(fields["host"]),
            datetime.fromisoformat(fields["recorded_at"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            "The record of the shared settings in the state store cannot be read.",
            hint="record them again where the right object store is in use: ork db use-settings",
        ) from error
