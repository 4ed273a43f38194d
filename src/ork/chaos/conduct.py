"""One chaos run from beginning to end: trigger runs, kill, let everything settle, read what became of it, and judge."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from random import Random
from time import monotonic
from typing import Any, TypeVar

from ork.app.installation import Installation, open_installation
from ork.app.stores import upgrade_store
from ork.chaos.containers import Containers
from ork.chaos.databases import SandboxDatabase, database_of
from ork.chaos.report import ChaosReport, attempt_lines, evidence
from ork.chaos.sandbox import Sandbox
from ork.chaos.setting import Setting, prepare
from ork.chaos.verdict import Breach, ChaosHistory, Harm, Kill, breaches
from ork.chaos.victims import Killer
from ork.errors import OrkError, StoreUnavailableError
from ork.model.run import NewRun, Run
from ork.model.task import Attempt
from ork.model.workflow import Version
from ork.state.records import RunFilter
from ork.state.sealing import stored_params
from ork.status.formatting import count
from ork.status.ids import new_run_id
from ork.status.schedules import deploy

T = TypeVar("T")
Progress = Callable[[int, int, int], None]  # kills, runs, unfinished runs

_MOST_CRASHES = 10  # and one more for each kill: then schedulers cannot work here
_SCHEDULERS = 2
_PAUSE = (0.0, 0.25)  # between two kills, in seconds
_UNAVAILABLE_SECONDS = 120.0
_STUCK_SECONDS = 120.0  # without any progress, after the last kill
_ORPHAN_SECONDS = 20.0
_PAGE = 200


class Conductor:
    """Runs one chaos run in a sandbox. `kill_until` is a time of the monotonic clock."""

    def __init__(self, setting: Setting, sandbox: Sandbox, progress: Progress, kill_until: float | None) -> None:
        self._setting, self._sandbox, self._progress, self._kill_until = setting, sandbox, progress, kill_until
        self._dice = Random(setting.seed)
        self._acknowledged: dict[str, str] = {}
        self._kills: list[Kill] = []
        self._crashes = 0
        self._unrecorded: frozenset[tuple[str, str]] = frozenset()

    async def conduct(self) -> ChaosReport:
        """Do all of it. The database, the containers and the processes are gone afterwards, also if it is interrupted."""
        began, setting, sandbox = monotonic(), self._setting, self._sandbox
        database = database_of(setting.database, sandbox, self._dice)
        containers = None if setting.image is None else Containers(sandbox, setting.image, setting.docker_host)
        try:
            await database.open()
            if database.url is not None:
                sandbox.variables["ORK_STORE"] = database.url
            if containers is not None:
                await containers.prepare()
            prepared = prepare(setting, sandbox)
            self._unrecorded = prepared.unrecorded
            await asyncio.to_thread(upgrade_store, sandbox.settings())
            installation = await open_installation(sandbox.settings())
            try:
                found, history = await self._tried(installation, prepared.versions, database, containers)
            finally:
                await installation.close()
        finally:
            sandbox.kill_everything()
            if containers is not None:
                await containers.remove()
            await database.close()
        notes = list(prepared.notes)
        if self._crashes:
            notes.append(
                f"{count(self._crashes, 'scheduler')} ended without being killed, and was replaced; see schedulers.log"
            )
            sandbox.keep = True
        return self._report(found, history, notes, monotonic() - began)

    async def _tried(
        self,
        installation: Installation,
        versions: Sequence[Version],
        database: SandboxDatabase,
        containers: Containers | None,
    ) -> tuple[list[Breach], ChaosHistory]:
        for version in versions:
            await deploy(installation.store, version, origin=None, now=datetime.now(UTC))
        for _ in range(_SCHEDULERS):
            self._sandbox.start_scheduler()
        started = [version for version in versions if version.workflow.name in self._setting.started]
        await self._attack(installation, started, Killer(self._sandbox, database, self._dice, containers))
        await self._settle(installation, containers)
        history = await self._history(installation, containers)
        found = breaches(history)
        damage = database.damage()
        if damage is not None:
            found.append(Breach(Harm.DAMAGED, "the database", damage))
        return found, history

    # ── kills ────────────────────────────────────────────────────────────────────────────────────

    async def _attack(self, installation: Installation, versions: Sequence[Version], killer: Killer) -> None:
        while len(self._kills) < self._setting.kills and not self._is_time_up():
            unfinished = await self._unfinished(installation)
            for _ in range(self._setting.concurrent_runs - unfinished):
                await self._trigger(installation, versions[len(self._acknowledged) % len(versions)])
            self._progress(len(self._kills), len(self._acknowledged), unfinished)
            await asyncio.sleep(self._dice.uniform(*_PAUSE))
            kill = await killer.kill()
            if kill is not None:
                self._kills.append(kill)
            self._replace_schedulers()

    def _is_time_up(self) -> bool:
        return self._kill_until is not None and monotonic() >= self._kill_until

    def _replace_schedulers(self) -> None:
        """A scheduler that has ended by itself is replaced, as a service manager would do, and reported."""
        for scheduler in [each for each in self._sandbox.schedulers if each.poll() is not None]:
            self._crashes += 1
            if self._crashes > _MOST_CRASHES + len(self._kills):
                self._sandbox.keep = True
                said = self._sandbox.log.read_text(errors="replace").strip().splitlines()[-1:]
                text = f"The schedulers of the sandbox end by themselves: {' '.join(said)}"
                raise OrkError(text, hint=f"see {self._sandbox.log}")
            self._sandbox.schedulers.remove(scheduler)
            self._sandbox.start_scheduler()

    async def _trigger(self, installation: Installation, version: Version) -> None:
        """One run, whose request is repeated with the same key until it is acknowledged."""
        key = f"chaos-{len(self._acknowledged)}"
        workflow = version.workflow.name
        given = self._setting.params.get(workflow, {})
        params = await _patiently(partial(stored_params, installation.store, version.workflow, given))

        async def create() -> Run:
            new = NewRun(new_run_id(), workflow, version.id, params, key=key)
            return (await installation.store.create_runs([new], datetime.now(UTC)))[0]

        self._acknowledged[key] = (await _patiently(create)).id

    async def _unfinished(self, installation: Installation) -> int:
        counts = await _patiently(installation.store.count_unfinished)
        return sum(counts.values())

    # ── afterwards ───────────────────────────────────────────────────────────────────────────────

    async def _settle(self, installation: Installation, containers: Containers | None) -> None:
        """Wait until all runs have ended, or until nothing changes any more and no task is at work."""
        seen, since = (-1, -1), monotonic()
        while unfinished := await self._unfinished(installation):
            self._replace_schedulers()
            now = unfinished, len(self._sandbox.ledger.read())
            self._progress(len(self._kills), len(self._acknowledged), unfinished)
            if now != seen or (self._setting.is_real and self._sandbox.attempts_alive()):
                seen, since = now, monotonic()
            elif monotonic() - since > _STUCK_SECONDS:
                return
            await asyncio.sleep(0.2)
        until = monotonic() + _ORPHAN_SECONDS
        while await self._alive(containers) and monotonic() < until:
            await asyncio.sleep(0.2)

    async def _alive(self, containers: Containers | None) -> dict[int, str]:
        """What still works for an attempt. Processes that wait for the next attempt have the tag of the last one, so only those
        that have not ended in the ledger count."""
        working = self._sandbox.ledger.working
        self._sandbox.ledger.read()
        found = {pid: tag for pid, tag in self._sandbox.attempts_alive().items() if working.get(tag) == pid}
        return found | (await containers.alive() if containers is not None else {})

    async def _history(self, installation: Installation, containers: Containers | None) -> ChaosHistory:
        runs = await _patiently(lambda: _all_runs(installation))
        attempts: list[Attempt] = []
        for run in runs:
            attempts += await _patiently(partial(installation.store.list_attempts, run.id))
        return ChaosHistory(
            self._acknowledged,
            runs,
            attempts,
            self._sandbox.ledger.read(),
            self._kills,
            await self._alive(containers) if all(run.status.is_final for run in runs) else {},
            self._unrecorded,
            self._setting.is_real,
        )

    def _report(self, found: list[Breach], history: ChaosHistory, notes: Sequence[str], seconds: float) -> ChaosReport:
        sandbox = self._sandbox
        if found:
            sandbox.keep = True
            (sandbox.folder / "breaches.txt").write_text(evidence(self._kills, found))
            (sandbox.folder / "attempts.txt").write_text(attempt_lines(history.attempts))
        return ChaosReport(
            self._setting.seed,
            self._setting.database.partition("://")[0],
            self._setting.is_real,
            self._setting.kills,
            tuple(self._kills),
            dict(Counter(str(run.status) for run in history.runs)),
            dict(Counter(str(attempt.status) for attempt in history.attempts)),
            sum(entry.what == "start" for entry in history.entries),
            tuple(found),
            tuple(notes),
            seconds,
            str(sandbox.folder) if sandbox.keep else None,
        )


async def _patiently(work: Callable[[], Awaitable[T]]) -> T:
    """Repeats the work while the store is unavailable, as every client has to."""
    until = monotonic() + _UNAVAILABLE_SECONDS
    while True:
        try:
            return await work()
        except StoreUnavailableError:
            if monotonic() > until:
                raise
            await asyncio.sleep(0.1)


async def _all_runs(installation: Installation) -> list[Run]:
    found: list[Run] = []
    query: dict[str, Any] = {"limit": _PAGE}
    while True:
        page = await installation.store.list_runs(RunFilter(**query))
        found += page.runs
        if page.cursor is None:
            return found
        query["cursor"] = page.cursor


def conduct(setting: Setting, progress: Progress, *, keep: bool = False, seconds: float | None = None) -> ChaosReport:
    """Conduct a chaos run in a new sandbox, which is removed unless `keep` is set or a promise was broken. No more is killed
    after `seconds`."""
    with Sandbox(keep=keep) as sandbox:
        until = None if seconds is None else monotonic() + seconds
        return run_in(sandbox, Conductor(setting, sandbox, progress, until))


def run_in(sandbox: Sandbox, conductor: Conductor) -> ChaosReport:
    """Let the conductor do its work. SIGTERM ends it as Ctrl-C does: what was started is ended, and the sandbox removed."""

    async def work() -> ChaosReport:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await conductor.conduct()

    try:
        return asyncio.run(work())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        sandbox.kill_everything()
