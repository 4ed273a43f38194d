"""The settings that all schedulers of an installation share: how they are stored, compared and refused."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from ork.errors import RefusedError, SettingsDifferError, StoreError
from ork.model.installation import SharedSettings


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
    """The settings as stored. `terms` is included so that SQL can compare it."""
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
    """The decoded settings. StoreError if they cannot be decoded: then it is unknown whether starting work is safe."""
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
