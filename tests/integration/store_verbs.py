"""Every verb of a store, ready to be called: each finds in `Given` what it needs, and each of the writes writes something."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from ork.core.effects import Alert
from ork.model.access import AuditEntry, Role, Token
from ork.model.ids import AttemptKey, RunId
from ork.model.installation import Control, Mode, SharedSettings
from ork.model.location import LocationEntry, LocationScan
from ork.model.record import replaced
from ork.model.run import NewRun, RunStatus
from ork.model.task import AttemptStatus, Heartbeat, TaskStatus
from ork.model.workflow import Schedule, Trigger
from ork.state.records import ClaimedRun, RunFilter
from ork.state.store import StateStore
from tests.conformance.state_samples import (
    ANN,
    BEN,
    NOW,
    attempt,
    changes,
    claim,
    command,
    deploy,
    ended,
    later,
    launch_request,
    new_run,
    owned_run,
    register,
    start_runs,
    task,
    version,
)

LOCATIONS = {"etl": "/flows", "other": "/more"}


class Given(NamedTuple):
    owned: ClaimedRun
    ready: RunId
    new: list[NewRun]
    due: NewRun
    held: LocationEntry
    alert: str
    gone: tuple[RunId, ...]


async def prepare(store: StateStore) -> Given:
    """A store with something of everything in it."""
    await register(store, ANN)
    await store.set_limits({"*": 500, "pool:api": 200})
    await deploy(store, "idle")
    nightly = version("nightly", schedule=Schedule("0 * * * *"))
    await store.save_version(nightly, origin=None, now=NOW, next_fire=later(5))
    await start_runs(store, 3)
    over = [ended(each, RunStatus.FAILED, alerts=(Alert(None, None),)) for each in await claim(store)]
    await store.commit(ANN, over, NOW)
    gone = await store.prune(later(60), 1)
    (alert,) = await store.take_alerts(1, NOW)
    await store.add_token(_token("old"))
    await store.add_token(replaced(_token("gone"), expires_at=NOW))
    await store.set_locations(LOCATIONS, NOW)
    held = await store.take_location(LOCATIONS, NOW, 60)
    assert held is not None
    owned = await owned_run(store)
    await store.commit(ANN, [changes(owned, launches=(launch_request(owned.run.id, "extract"),))], NOW)
    (ready,) = await start_runs(store)
    due = new_run(nightly, trigger=Trigger.SCHEDULE, scheduled_for=later(5))
    new = [new_run(owned.version), new_run(owned.version, key="k")]
    return Given(owned, ready.id, new, due, held, alert.id, gone)


def _extract(given: Given) -> AttemptKey:
    return attempt(given.owned.run.id, "extract").key


def _token(name: str) -> Token:
    return Token(name, name, Role.VIEWER, f"digest of {name}", NOW)


def _commit(store: StateStore, given: Given) -> Awaitable[Any]:
    """Something of every kind: the run's row, a task, an attempt that ended, and one to be admitted."""
    owned = given.owned
    run = replaced(owned.run, note="written")
    over = attempt(owned.run.id, "extract", status=AttemptStatus.SUCCESS)
    next_one = launch_request(owned.run.id, "load", pool="api")
    what = {"tasks": (task("extract", TaskStatus.SUCCESS),), "attempts": (over,), "launches": (next_one,)}
    return store.commit(ANN, [changes(owned, run=run, **what)], NOW)


SHARED = SharedSettings("id", 10.0, 60.0, "file:/objects", "host", NOW)
Verb = Callable[[StateStore, Given], Awaitable[Any]]

WRITES: dict[str, Verb] = {
    "save_version": lambda store, _: store.save_version(version("new"), origin=None, now=NOW),
    "add_version": lambda store, _: store.add_version(version("new"), NOW),
    "set_enabled": lambda store, _: store.set_enabled("idle", False),
    "delete_workflow": lambda store, _: store.delete_workflow("idle"),
    "set_limits": lambda store, _: store.set_limits({"*": 7, "pool:other": 3}),
    "record_shared_settings": lambda store, _: store.record_shared_settings(SHARED),
    "replace_shared_settings": lambda store, _: store.replace_shared_settings(SHARED, force=True),
    "set_control": lambda store, _: store.set_control(Control("*", Mode.PAUSED, "eve", NOW)),
    "clear_control": lambda store, _: store.clear_control("*"),
    "create_runs": lambda store, given: store.create_runs(given.new, NOW),
    "submit_command": lambda store, given: store.submit_command(command(given.ready), NOW),
    "register": lambda store, _: store.register(BEN, "ben", "scheduler", NOW),
    "claim_runs": lambda store, _: store.claim_runs(ANN, 10, NOW),
    "commit": _commit,
    "renew": lambda store, _: store.renew(ANN),
    "expire": lambda store, _: store.expire([ANN]),
    "release": lambda store, _: store.release(ANN),
    "fire": lambda store, given: store.fire("nightly", later(5), [given.due], later(3605), later(6)),
    "take_alerts": lambda store, _: store.take_alerts(10, NOW),
    "settle_alert": lambda store, given: store.settle_alert(given.alert, ["mail"], None),
    "prune": lambda store, _: store.prune(later(60), 10),
    "swept": lambda store, given: store.swept(given.gone),
    "add_token": lambda store, _: store.add_token(_token("new")),
    "revoke_token": lambda store, _: store.revoke_token("old", NOW),
    "rotate_token": lambda store, _: store.rotate_token("old", _token("new"), later(60), NOW),
    "mark_token_used": lambda store, _: store.mark_token_used("old", later(600)),
    "forget_tokens": lambda store, _: store.forget_tokens("gone", later(600)),
    "swap_note": lambda store, _: store.swap_note("note", None, "text"),
    "use_once": lambda store, _: store.use_once("key", later(60), NOW),
    "note_fallbacks": lambda store, _: store.note_fallbacks(ANN, ["fork server: crashed"]),
    "note_heartbeats": lambda store, given: store.note_heartbeats([Heartbeat(_extract(given), 3, 1.0)]),
    "set_aside": lambda store, given: store.set_aside(ANN, given.owned.run.id, given.owned.epoch, "damaged", NOW),
    "record": lambda store, _: store.record(AuditEntry(NOW, "eve", "run.cancel", "r1")),
    "set_locations": lambda store, _: store.set_locations({"etl": "/elsewhere"}, NOW),
    "ask_refresh": lambda store, _: store.ask_refresh("other", NOW),
    "take_location": lambda store, _: store.take_location(LOCATIONS, NOW, 60),
    "keep_location": lambda store, given: store.keep_location(given.held, later(30), 60),
    "settle_location": lambda store, given: store.settle_location(given.held, LocationScan("d", "d"), later(300), NOW),
}

READS: dict[str, Verb] = {
    "changes_since": lambda store, _: store.changes_since("0"),
    "count_unfinished": lambda store, _: store.count_unfinished(),
    "due_schedules": lambda store, _: store.due_schedules(NOW),
    "find_by_key": lambda store, _: store.find_by_key("flow", "k"),
    "find_cached": lambda store, _: store.find_cached("k", NOW),
    "find_scheduled": lambda store, _: store.find_scheduled("flow", [NOW]),
    "find_runs": lambda store, _: store.find_runs("run"),
    "find_token": lambda store, _: store.find_token("digest of old"),
    "get_owner": lambda store, given: store.get_owner(given.ready),
    "get_run": lambda store, given: store.get_run(given.ready),
    "get_version": lambda store, given: store.get_version(given.due.version),
    "get_workflow": lambda store, _: store.get_workflow("flow"),
    "read_note": lambda store, _: store.read_note("note"),
    "get_key": lambda store, given: store.get_key(given.ready),
    "get_starter": lambda store, given: store.get_starter(given.ready),
    "list_quarantined": lambda store, _: store.list_quarantined(),
    "live_tokens": lambda store, _: store.live_tokens(frozenset({"digest of old"}), NOW),
    "list_controls": lambda store, _: store.list_controls(),
    "runs_with_commands": lambda store, _: store.runs_with_commands(),
    "look_ahead": lambda store, _: store.look_ahead(LOCATIONS),
    "shorten_ids": lambda store, given: store.shorten_ids([given.ready], 4),
    "read_shared_settings": lambda store, _: store.read_shared_settings(),
    "leftovers": lambda store, _: store.leftovers(10),
    "param_values": lambda store, given: store.param_values([given.ready], "day"),
    "last_runs": lambda store, _: store.last_runs(["flow"]),
    "limit_use": lambda store, _: store.limit_use(),
    "list_alerts": lambda store, given: store.list_alerts(given.ready),
    "over_budget_at": lambda store, given: store.over_budget_at(given.ready),
    "list_attempts": lambda store, given: store.list_attempts(given.owned.run.id),
    "count_tasks": lambda store, given: store.count_tasks(given.owned.run.id),
    "task_times": lambda store, given: store.task_times(given.owned.run.id),
    "list_audit": lambda store, _: store.list_audit(),
    "list_locations": lambda store, _: store.list_locations(),
    "list_runs": lambda store, _: store.list_runs(RunFilter()),
    "list_schedulers": lambda store, _: store.list_schedulers(),
    "list_schedules": lambda store, _: store.list_schedules(),
    "list_tokens": lambda store, _: store.list_tokens(),
    "list_versions": lambda store, _: store.list_versions("flow"),
    "list_workflows": lambda store, _: store.list_workflows(),
    "next_alert_at": lambda store, _: store.next_alert_at(),
    "next_fire_at": lambda store, _: store.next_fire_at(NOW),
    "next_location_at": lambda store, _: store.next_location_at(LOCATIONS),
    "pending_commands": lambda store, given: store.pending_commands(given.ready),
    "prunable_runs": lambda store, _: store.prunable_runs(NOW, 10),
    "run_updates": lambda store, given: store.run_updates(given.owned.run.id),
    "unsent_alerts": lambda store, _: store.unsent_alerts(10),
    "signing_key": lambda store, _: store.signing_key(),
}

ASK_NO_STATEMENT = {"close", "wait_for_change"}
