"""What belongs to the installation as a whole: shared settings, limits, controls, the signing key."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ork.core.limits import limit_names
from ork.model.ids import RunId
from ork.model.installation import Control, Mode, SharedSettings
from ork.model.workflow import Rate
from ork.state.firestore.accounts import CONFIG, Account, LimitSettings, granted_anew, room_of_all
from ork.state.firestore.commit import doc_id
from ork.state.firestore.database import Database, Plan, wake
from ork.state.firestore.documents import FACTS, attempt_key, run_state
from ork.state.firestore.values import micros, moment_of
from ork.state.firestore.wire import Doc, Put, Query
from ork.state.installation import attempts_are_active, settings_of, settings_text
from ork.state.records import NO_RATES, LimitUse

SETTINGS = "meta/settings"
KEY = "meta/key"
_HOLDERS_SHOWN = 5


def settings_in(doc: Doc | None) -> SharedSettings | None:
    return None if doc is None else settings_of(doc.fields["settings"].encode())


def _settings_put(settings: SharedSettings, guard: bool | int) -> Put:
    return Put(SETTINGS, {"settings": settings_text(settings)}, guard)


async def read_shared_settings(db: Database) -> SharedSettings | None:
    db.settings = await db.wire.get(SETTINGS)
    return settings_in(db.settings)


async def record_shared_settings(db: Database, settings: SharedSettings) -> SharedSettings:
    async def plan() -> Plan[SharedSettings]:
        recorded = settings_in(await db.wire.get(SETTINGS))
        return Plan([_settings_put(settings, False)], settings) if recorded is None else Plan((), recorded)

    return await db.change(plan)


async def replace_shared_settings(db: Database, settings: SharedSettings, *, force: bool = False) -> None:
    """First the settings, then the schedulers: whoever registers in between does so under the new ones."""
    from ork.state.firestore.ownership import departure

    async def plan() -> Plan[None]:
        doc = await db.wire.get(SETTINGS)
        active = 0 if force else await _active(db)
        if active:
            raise attempts_are_active(active)
        return Plan([_settings_put(settings, False if doc is None else doc.time), wake(db)], None)

    await db.change(plan)

    async def depart() -> Plan[bool]:
        found = await db.wire.query(Query("schedulers", limit=1))
        puts = (await departure(db, found[0].id, exits=False)).puts if found else ()
        return Plan(puts, bool(found))

    while await db.change(depart):
        continue
    db.forget()


async def _active(db: Database) -> int:
    busy = await db.wire.query(Query("runs", (("busy", "==", True),), (), None, FACTS))
    return sum(len(run_state(doc).act) for doc in busy)


async def read_note(db: Database, name: str) -> str | None:
    doc = await db.wire.get(_note_path(name))
    return None if doc is None else str(doc.fields["text"])


async def swap_note(db: Database, name: str, before: str | None, after: str) -> bool:
    async def plan() -> Plan[bool]:
        doc = await db.wire.get(_note_path(name))
        if (None if doc is None else doc.fields["text"]) != before:
            return Plan((), False)
        return Plan([Put(_note_path(name), {"text": after}, False if doc is None else doc.time)], True)

    return await db.change(plan, is_repeatable=False)


def _note_path(name: str) -> str:
    return f"meta/{doc_id(f'note {name}')}"


async def set_limits(db: Database, limits: Mapping[str, int], rates: Mapping[str, Rate] = NO_RATES) -> None:
    async def plan() -> Plan[bool]:
        known = LimitSettings(await db.wire.get(CONFIG))
        if (known.slots, known.rates) == (dict(limits), dict(rates)):
            db.limits = known
            return Plan((), False)
        known.slots, known.rates = dict(limits), dict(rates)
        accounts = [Account(doc.id, doc) for doc in await db.wire.query(Query("accounts"))]
        granted_anew(accounts, known.slots)
        return Plan([known.put(), *(account.put() for account in accounts), wake(db)], True)

    if await db.change(plan):
        db.forget()


async def limit_use(db: Database) -> tuple[LimitUse, ...]:
    limits = LimitSettings(await db.wire.get(CONFIG))
    if not limits.slots:
        return ()
    room = room_of_all(limits.slots, [Account(doc.id, doc) for doc in await db.wire.query(Query("accounts"))])
    holders: dict[str, list[Any]] = {name: [] for name in limits.slots}
    for doc in await db.wire.query(Query("runs", (("busy", "==", True),), (), None, FACTS)):
        state = run_state(doc)
        for key, kind in state.act.items() if state.aside is None else ():
            executor, pool, *_ = kind.split("\t") if kind else ("", "")
            for name in limit_names(executor, pool or None) if kind else ():
                if name in holders:
                    holders[name].append(attempt_key(state.id, key))
    return tuple(
        LimitUse(name, slots, slots - room[name], tuple(holders[name][:_HOLDERS_SHOWN]))
        for name, slots in sorted(limits.slots.items())
    )


async def set_control(db: Database, control: Control) -> None:
    fields = {
        "target": control.target, "mode": control.mode.value, "by": control.by, "at": micros(control.at),
        "reason": control.reason,
    }  # fmt: skip

    async def plan() -> Plan[None]:
        return Plan([Put(_control_path(control.target), fields), wake(db)], None)

    await db.change(plan)


async def clear_control(db: Database, target: str) -> bool:
    async def plan() -> Plan[bool]:
        doc = await db.wire.get(_control_path(target))
        return Plan((), False) if doc is None else Plan([wake(db), Put(doc.path, None, doc.time)], True)

    return await db.change(plan)


async def list_controls(db: Database) -> tuple[Control, ...]:
    return tuple(sorted(map(_control, await db.wire.query(Query("controls"))), key=lambda control: control.target))


def _control(doc: Doc) -> Control:
    fields = doc.fields
    at: datetime = moment_of(fields["at"])
    return Control(fields["target"], Mode(fields["mode"]), fields["by"], at, fields.get("reason"))


def _control_path(target: str) -> str:
    return f"controls/{doc_id(target)}"


async def runs_with_commands(db: Database) -> tuple[RunId, ...]:
    docs = await db.wire.query(Query("runs", (("asks", "==", True),), (), None, ()))
    return tuple(sorted(RunId(doc.id) for doc in docs))


async def signing_key(db: Database) -> bytes:
    """It never changes, so a handle reads it once."""
    if db.key is None:
        db.key = await _signing_key(db)
    return db.key


async def _signing_key(db: Database) -> bytes:
    async def plan() -> Plan[bytes]:
        doc = await db.wire.get(KEY)
        if doc is not None:
            return Plan((), doc.fields["key"])
        made = secrets.token_bytes(32)
        return Plan([Put(KEY, {"key": made}, False)], made)

    return await db.change(plan)
