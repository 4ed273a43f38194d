"""Compares the settings of this process with those that all schedulers of the installation share.

Two object stores under one state store would start an attempt twice: the second scheduler would not see that the
attempt's gate is taken. So the object store has an identity, the state store records it, and both are compared before
anything is done.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from ork.errors import ObjectsError, SettingsDifferError
from ork.executors.processes import hostname
from ork.model.installation import SharedSettings
from ork.model.run import RunStatus
from ork.model.task import Attempt
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.calls import DocumentCalls
from ork.objects.documents import installation_mark
from ork.objects.elsewhere import ObjectsElsewhere
from ork.objects.identity import ObjectsIdentity, make_identity, read_identity
from ork.objects.opening import is_on_network_disk, undo_opening
from ork.settings import Settings
from ork.state.administration import AdminStore
from ork.state.records import RunFilter

_USE = "record this one in its place while nothing runs: ork db use-settings"


async def join_installation(store: AdminStore, objects: AttemptDocuments, settings: Settings) -> SharedSettings:
    """The installation's shared settings, which match ours. The first process records its own.

    SettingsDifferError if ours differ, or if this object store cannot be the installation's.
    """
    await check_server(store, objects)
    recorded, calls = await store.read_shared_settings(), DocumentCalls(objects)
    identity: ObjectsIdentity | None
    if recorded is None:
        await _check_active_attempts(store, objects)
        identity = await calls.call(_make_identity, objects)
        recorded = await store.record_shared_settings(local_shared_settings(settings, objects, identity))
    else:
        identity = await calls.call(read_identity, objects)
    _check_kind(objects, identity)
    _check_disk(objects)
    problem = difference(recorded, local_shared_settings(settings, objects, identity))
    if problem is not None:
        raise problem
    return recorded


async def check_server(store: AdminStore, objects: AttemptDocuments) -> None:
    """SettingsDifferError if the objects are behind a server of another installation: it would not know our attempts."""
    if not objects.is_guarded:
        return
    from ork.objects.served import ServedObjects

    assert isinstance(objects, ServedObjects)
    about = await DocumentCalls(objects).call(objects.check)
    if about["installation"] != installation_mark(await store.signing_key()):
        raise SettingsDifferError(
            f"the server {objects.address} uses another state store than this machine",
            hint="point ORK_STORE here and on the server to the same one",
        )


async def objects_for_reading(store: AdminStore, objects: AttemptDocuments, settings: Settings) -> AttemptDocuments:
    """These objects, or a stand-in whose errors say why they are not the installation's. Writes nothing."""
    recorded = await store.read_shared_settings()
    try:
        identity = None if recorded is None else read_identity(objects)
    except ObjectsError as error:
        if objects.answers_at_once:
            raise
        return ObjectsElsewhere(objects.url, error.message, error.hint)  # the state can be read all the same
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
    mine = local_shared_settings(settings, objects, await DocumentCalls(objects).call(_make_identity, objects))
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
    found = read_identity(objects)
    if found is None and objects.is_guarded:
        raise ObjectsError(
            f"the object store behind {objects.url} has no identity: its folder is new or was emptied",
            hint="restart the server: it makes one when it starts",
        )
    return found or make_identity(objects, ObjectsIdentity(os.urandom(16).hex(), objects.kind, hostname()))


def _check_kind(objects: AttemptDocuments, identity: ObjectsIdentity | None) -> None:
    """A folder with journals and one with files do not see each other's documents. Behind a server it is the server's."""
    if identity is None or identity.kind == objects.kind or objects.is_guarded:
        return
    undo_opening(objects)
    raise SettingsDifferError(
        f"{objects.url} was created for {identity.kind}, and was opened for {objects.kind}",
        hint="another process created it at the same time: try again",
    )


def _check_disk(objects: AttemptDocuments) -> None:
    """Journals are for one machine: another one that mounts their folder could not append to them safely."""
    if is_on_network_disk(objects):
        raise SettingsDifferError(
            f"{objects.url} keeps the documents of a run in a journal, which only the machine with the disk can write; "
            f"{hostname()} reaches the folder over a network",
            hint="while nothing runs, let all machines use a new folder with files: "
            "ork --objects file:/path/to/new/folder db use-settings",
        )


async def _check_active_attempts(store: AdminStore, objects: AttemptDocuments) -> None:
    """For a state store without a record: this object store must have documents of its active attempts. Otherwise another
    folder is in use, and the attempts would be started twice."""
    unknown, calls = 0, DocumentCalls(objects)
    async for attempt in _active_attempts(store):
        name = str(attempt.key)
        if await calls.call(objects.read_spec, name) is not None:
            return
        if (await calls.call(objects.read_gates, [name]))[0] is not None:
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
