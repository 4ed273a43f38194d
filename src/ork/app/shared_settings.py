"""Compares the settings of this process with those that all schedulers of the installation share.

Two object stores under one state store would start an attempt twice: the second scheduler would not see that the
attempt's gate is taken. So the object store has an identity, the state store records it, and both are compared before
anything is done.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from ork.errors import SettingsDifferError
from ork.executors.processes import hostname
from ork.model.installation import SharedSettings
from ork.model.run import RunStatus
from ork.model.task import Attempt
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.elsewhere import ObjectsElsewhere
from ork.objects.identity import ObjectsIdentity, make_identity, read_identity
from ork.objects.opening import undo_opening
from ork.settings import Settings
from ork.state.administration import AdminStore
from ork.state.records import RunFilter

_USE = "record this one in its place while nothing runs: ork db use-settings"


async def join_installation(store: AdminStore, objects: AttemptDocuments, settings: Settings) -> SharedSettings:
    """The installation's shared settings, which match ours. The first process records its own.

    SettingsDifferError if ours differ, or if this object store cannot be the installation's.
    """
    recorded = await store.read_shared_settings()
    identity: ObjectsIdentity | None
    if recorded is None:
        await _check_active_attempts(store, objects)
        identity = _make_identity(objects)
        recorded = await store.record_shared_settings(local_shared_settings(settings, objects, identity))
    else:
        identity = read_identity(objects)
    _check_kind(objects, identity)
    problem = difference(recorded, local_shared_settings(settings, objects, identity))
    if problem is not None:
        raise problem
    return recorded


async def objects_for_reading(store: AdminStore, objects: AttemptDocuments, settings: Settings) -> AttemptDocuments:
    """These objects, or a stand-in whose errors say why they are not the installation's. Writes nothing."""
    recorded = await store.read_shared_settings()
    identity = None if recorded is None else read_identity(objects)
    if recorded is None or (identity is not None and identity.id == recorded.objects):
        return objects
    missing = objects.missing_place()
    if recorded.objects_url == objects.url and missing is not None:
        return ObjectsElsewhere(
            objects.url, f"{missing} is missing: logs and large outputs in it are gone", "restore it"
        )
    mine = local_shared_settings(settings, objects, identity)
    problem = _objects_differ(recorded, mine)
    return ObjectsElsewhere(objects.url, problem.message, problem.hint)


def local_shared_settings(
    settings: Settings, objects: AttemptDocuments, identity: ObjectsIdentity | None
) -> SharedSettings:
    """The settings that this process would record. An object store without an identity has the id ""."""
    return SharedSettings(
        "" if identity is None else identity.id,
        settings.heartbeat_seconds,
        settings.stale_seconds,
        objects.url,
        hostname(),
        datetime.now(UTC),
    )


async def use_settings(
    store: AdminStore, objects: AttemptDocuments, settings: Settings, *, force: bool
) -> SharedSettings:
    """Records the settings of this process as the installation's. RefusedError while attempts are active."""
    mine = local_shared_settings(settings, objects, _make_identity(objects))
    await store.replace_shared_settings(mine, force=force)
    return mine


def difference(recorded: SharedSettings, mine: SharedSettings) -> SettingsDifferError | None:
    """An error that describes the difference; None if there is none."""
    if mine.objects != recorded.objects:
        return _objects_differ(recorded, mine)
    times = [
        (name, variable, ours, theirs)
        for name, variable, ours, theirs in (
            ("heartbeat", "ORK_HEARTBEAT_SECONDS", mine.heartbeat_seconds, recorded.heartbeat_seconds),
            ("stale limit", "ORK_STALE_SECONDS", mine.stale_seconds, recorded.stale_seconds),
        )
        if ours != theirs
    ]
    if not times:
        return None
    differences = ", ".join(
        f"the {name} is {ours:g}s on this machine and {theirs:g}s in the installation"
        for name, _, ours, theirs in times
    )
    variables = " ".join(f"{variable}={theirs:g}" for _, variable, _, theirs in times)
    return SettingsDifferError(
        f"all schedulers of an installation must agree on when a worker is lost: {differences} "
        f"(recorded by {recorded.host} on {recorded.recorded_at:%Y-%m-%d %H:%M} UTC)",
        hint=f"set {variables}, or {_USE}",
    )


def _objects_differ(recorded: SharedSettings, mine: SharedSettings) -> SettingsDifferError:
    if not mine.objects and (mine.objects_url, mine.host) == (recorded.objects_url, recorded.host):
        return SettingsDifferError(
            f"the object store of the installation, {mine.objects_url}, is missing or empty: logs and large outputs of "
            "earlier runs are gone with it",
            hint="restore the folder (is a file system not mounted?), or continue without them: ork db use-settings",
        )
    identity = f"id {mine.objects[:8]}" if mine.objects else "new or empty: it has no identity.json"
    return SettingsDifferError(
        f"this is not the object store of the installation: {mine.objects_url} on {mine.host} ({identity}); "
        f"the installation's is {recorded.objects_url} as seen by {recorded.host} (id {recorded.objects[:8]}), "
        f"recorded on {recorded.recorded_at:%Y-%m-%d %H:%M} UTC",
        hint="point ORK_OBJECTS, --objects or `objects:` in ork.yaml to it (on several machines a folder that all of "
        f"them mount), or {_USE}",
    )


def _make_identity(objects: AttemptDocuments) -> ObjectsIdentity:
    new = ObjectsIdentity(os.urandom(16).hex(), objects.kind, hostname())
    return read_identity(objects) or make_identity(objects, new)


def _check_kind(objects: AttemptDocuments, identity: ObjectsIdentity | None) -> None:
    """A folder with journals and one with files do not see each other's documents."""
    if identity is None or identity.kind == objects.kind:
        return
    undo_opening(objects)
    raise SettingsDifferError(
        f"{objects.url} was created for {identity.kind}, and was opened for {objects.kind}",
        hint="another process created it at the same time: try again",
    )


async def _check_active_attempts(store: AdminStore, objects: AttemptDocuments) -> None:
    """For a state store without a record: this object store must have documents of its active attempts. Otherwise another
    folder is in use, and the attempts would be started twice."""
    unknown = 0
    async for attempt in _active_attempts(store):
        name = str(attempt.key)
        if objects.read_spec(name) is not None or objects.read_gates([name])[0] is not None:
            return
        unknown += 1
    if unknown:
        some = "1 attempt that is" if unknown == 1 else f"{unknown} attempts that are"
        raise SettingsDifferError(
            f"the state store has {some} active, and {objects.url} on {hostname()} has no documents of any: "
            "this is not the object store of the installation",
            hint="point ORK_OBJECTS to the object store that was used so far; "
            "if that is lost: ork db use-settings --force",
        )


async def _active_attempts(store: AdminStore) -> AsyncIterator[Attempt]:
    query = RunFilter(statuses=frozenset({RunStatus.RUNNING, RunStatus.PAUSED}), limit=100)
    while True:
        page = await store.list_runs(query)
        for run in page.runs:
            for attempt in await store.list_attempts(run.id):
                if not attempt.status.is_final:
                    yield attempt
        if page.cursor is None:
            return
        query = RunFilter(statuses=query.statuses, limit=query.limit, cursor=page.cursor)
