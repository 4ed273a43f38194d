"""Firestore as it is in earnest: what a run costs, which indexes queries need, sizes, upgrades. Failures: test_firestore_faults.py."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ork.model.ids import RunId
from ork.model.record import replaced
from ork.model.run import CommandKind, RunStatus
from ork.model.task import AttemptStatus, InlineOutput, TaskStatus
from ork.state.records import RunChanges, RunFilter
from tests.conformance.state_samples import (
    ANN,
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
)
from tests.firestore import HOST
from tests.integration.firestore.world import ork, store_on

pytestmark = pytest.mark.slow

THREE = """
name: three
tasks:
  extract: {command: "echo one"}
  clean: {command: "echo two", depends_on: [extract]}
  load: {command: "echo three", depends_on: [clean]}
"""
WIDE = """
name: wide
tasks:
  many: {command: "true", parallel: 1000}
"""


# ── what it costs ────────────────────────────────────────────────────────────────────────────────


def test_a_run_of_three_tasks_writes_at_most_40_documents_and_reads_at_most_60(
    proxy: Any, url: str, tmp_path: Path
) -> None:
    (tmp_path / "workflow.yaml").write_text(THREE)
    ork(url, tmp_path, "run", "workflow.yaml")
    assert proxy.writes <= 40
    assert proxy.reads <= 60


def test_a_tick_with_nothing_to_do_writes_nothing_and_listens_to_nothing(proxy: Any, url: str, tmp_path: Path) -> None:
    (tmp_path / "workflow.yaml").write_text(THREE)
    ork(url, tmp_path, "run", "workflow.yaml")
    proxy.counts.clear()
    ork(url, tmp_path, "tick")
    assert (proxy.counts["writes"], proxy.counts["deletes"], proxy.counts["Listen"]) == (0, 0, 0)
    assert proxy.reads <= 8


def test_who_waits_and_nothing_happens_sends_nothing(proxy: Any, url: str) -> None:
    async def wait() -> None:
        store = store_on(url)
        await store.wait_for_change(0)
        await store.wait_for_change(0.5)
        proxy.counts.clear()
        assert not await store.wait_for_change(3)
        await store.close()

    asyncio.run(wait())
    assert not +proxy.counts


def test_a_fan_out_of_1000_writes_at_most_two_documents_per_instance(proxy: Any, url: str, tmp_path: Path) -> None:
    (tmp_path / "workflow.yaml").write_text(WIDE)
    ork(url, tmp_path, "run", "workflow.yaml")
    assert proxy.writes <= 2000
    assert proxy.check_documents(url) == []


async def _wide_run(url: str, number: int) -> tuple[Any, Any, int]:
    """A run whose `number` instances have all been created, launched and ended, 500 at a time."""
    store = store_on(url)
    claimed = await owned_run(store, of=await deploy(store, tasks=("wide",)))
    run, rows = claimed.run.id, [task("wide", index=index, item=json.dumps({"n": index})) for index in range(number)]
    await store.commit(ANN, [changes(claimed, tasks=tuple(rows))], NOW)
    for start in range(0, number, 500):
        indexes = range(start, min(start + 500, number))
        launches = tuple(launch_request(run, "wide", index=index) for index in indexes)
        await store.commit(ANN, [changes(claimed, launches=launches)], NOW)
        over = tuple(
            attempt(run, "wide", index=index, status=AttemptStatus.SUCCESS, finished_at=NOW) for index in indexes
        )
        done = tuple(task("wide", TaskStatus.SUCCESS, index=index, attempt=1, finished_at=NOW) for index in indexes)
        await store.commit(ANN, [changes(claimed, tasks=done, attempts=over)], NOW)
    return store, claimed, number


def test_a_run_of_10000_instances_stays_within_the_limits_for_documents_and_requests(proxy: Any, url: str) -> None:
    async def go() -> None:
        store, claimed, number = await _wide_run(url, 10_000)
        assert proxy.writes <= number
        proxy.counts.clear()
        await store.release(ANN, [claimed.run.id])
        (again,) = await claim(store)
        assert len(again.tasks) == number + 1
        assert all(each.status is TaskStatus.SUCCESS for each in again.tasks[1:])
        assert proxy.reads <= 60  # 50 chunks and the run's own document
        await store.close()

    asyncio.run(go())
    assert proxy.check_documents(url) == []


def test_large_rows_and_params_are_within_the_limits_and_come_back(proxy: Any, url: str) -> None:
    async def go() -> None:
        store = store_on(url)
        flow = await deploy(store, tasks=("a", "wide"))
        (run,) = await store.create_runs([new_run(flow, params={"text": "x" * 500_000})], NOW)
        await register(store, ANN)
        (claimed,) = await claim(store)
        assert len(claimed.run.params["text"]) == 500_000
        rows = tuple(task("wide", index=index, reason=f"{index} " + "long" * 5000) for index in range(400))
        await store.commit(ANN, [changes(claimed, tasks=rows)], NOW)
        update = await store.run_updates(run.id)
        assert update.tasks == rows
        mark = update.mark
        changed = task("wide", index=7, reason="other " + "long" * 5000)
        await store.commit(ANN, [changes(claimed, tasks=(changed,))], NOW)
        assert (await store.run_updates(run.id, mark)).tasks == (changed,)
        await store.close()

    asyncio.run(go())
    assert proxy.check_documents(url) == []


def test_many_retries_of_many_instances_stay_within_the_limits(proxy: Any, url: str) -> None:
    async def go() -> None:
        store = store_on(url)
        claimed = await owned_run(store, of=await deploy(store, tasks=("wide",)))
        run = claimed.run.id
        for number in range(1, 6):
            rows = tuple(attempt(run, "wide", number, index=index, status=AttemptStatus.LOST) for index in range(200))
            await store.commit(ANN, [changes(claimed, attempts=rows)], NOW)
        assert len(await store.list_attempts(run)) == 1000
        await store.close()

    asyncio.run(go())
    assert proxy.check_documents(url) == []


# ── indexes ──────────────────────────────────────────────────────────────────────────────────────


async def _ask_everything(store: Any) -> None:
    """Every verb that queries, in every form that a command or the API uses."""
    flow = await deploy(store, max_active_runs=5)
    await start_runs(store, 3, of=flow)
    await register(store, ANN)
    first, second, third = await claim(store)
    await store.commit(ANN, [changes(first, launches=(launch_request(first.run.id, "extract"),)), ended(second)], NOW)
    await store.commit(ANN, [ended(third, RunStatus.FAILED)], NOW)
    await store.submit_command(command(first.run.id, CommandKind.PAUSE), NOW)
    for workflow in (None, "flow"):
        for statuses in (frozenset(), frozenset({RunStatus.SUCCESS}), frozenset({RunStatus.SUCCESS, RunStatus.FAILED})):
            page = await store.list_runs(RunFilter(workflow=workflow, statuses=statuses, limit=1))
            if page.cursor is not None:
                await store.list_runs(RunFilter(workflow=workflow, statuses=statuses, cursor=page.cursor))
    mark = (await store.changes_since(None)).mark
    await store.changes_since(mark)
    await store.claim_runs(ANN, 5, NOW, only=[first.run.id])
    await store.find_runs("a")
    await store.shorten_ids([first.run.id], 4)
    calls = (
        store.list_versions("flow"), store.list_workflows(), store.list_schedules(), store.list_locations(), store.last_runs(["flow"]),
        store.count_unfinished(), store.list_alerts(first.run.id), store.unsent_alerts(5), store.list_schedulers(),
        store.list_controls(), store.limit_use(), store.list_quarantined(), store.list_tokens(), store.list_audit(5), store.look_ahead(()),
        store.due_schedules(NOW), store.next_fire_at(NOW), store.next_alert_at(), store.take_alerts(5, NOW), store.runs_with_commands(),
        store.prunable_runs(later(99), 10, 1), store.prune(later(99), 10), store.leftovers(5), store.wait_for_change(0),
        store.run_updates(first.run.id), store.list_attempts(first.run.id),
    )  # fmt: skip
    for call in calls:
        await call
    await store.release(ANN)
    await store.close()


def test_every_query_is_served_by_an_index_of_the_file(proxy: Any, url: str) -> None:
    asyncio.run(_ask_everything(store_on(url)))
    assert len(proxy.queries) > 25
    assert proxy.missing_indexes() == []


def test_the_recorder_finds_a_query_without_an_index(proxy: Any) -> None:
    from ork.testing.firestore.indexes import is_refused

    unserved = ["runs", ["owner"], [], [["place", "DESCENDING"]]]
    assert is_refused(unserved)
    assert is_refused(["runs", [], ["act"], [["act", "ASCENDING"]]])  # a field without any index
    assert not is_refused(["runs", ["owner"], [], []])


def test_the_index_file_is_printed_and_written(proxy: Any, url: str, tmp_path: Path) -> None:
    printed = json.loads(ork(url, tmp_path, "db", "indexes"))
    assert {index["collectionGroup"] for index in printed["indexes"]} == {"runs", "versions"}
    ork(url, tmp_path, "db", "indexes", "-o", "firestore.indexes.json")
    assert json.loads((tmp_path / "firestore.indexes.json").read_text()) == printed
    assert "makes its own indexes" in ork(f"sqlite:{tmp_path}/ork.db", tmp_path, "db", "indexes", fails=True)


# ── what is missing ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fault", "words"),
    [("denied", "roles/datastore.user"), ("no database", "gcloud firestore databases create")],
)
@pytest.mark.parametrize("method", ["BatchGetDocuments", "Commit"])
def test_doctor_names_a_missing_permission_and_a_missing_database(
    proxy: Any, url: str, tmp_path: Path, fault: str, words: str, method: str
) -> None:
    proxy.fault = lambda name, number: fault if name == method else None
    assert words in ork(url, tmp_path, "doctor", fails=True)


def test_doctor_names_missing_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("google.cloud.firestore_v1", reason="google-cloud-firestore is not installed")
    monkeypatch.delenv(HOST, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    assert "gcloud auth application-default login" in ork(
        "firestore://some-project/ork", tmp_path, "doctor", fails=True
    )


def test_doctor_names_the_missing_package(tmp_path: Path) -> None:
    hidden = "import sys; sys.modules['google.cloud.firestore_v1'] = None; sys.argv = ['ork', 'doctor']; import ork.cli.main as m; m.main()"
    store = {**os.environ, "ORK_STORE": "firestore://some-project/ork"}
    done = subprocess.run([sys.executable, "-c", hidden], cwd=tmp_path, env=store, capture_output=True, text=True)
    assert "pip install 'ork-orchestrator[gcp]'" in done.stdout + done.stderr


# ── upgrades ─────────────────────────────────────────────────────────────────────────────────────


def test_documents_of_an_older_version_are_read_and_upgraded_in_place(proxy: Any, url: str, monkeypatch: Any) -> None:
    from ork.state.firestore import db_status, migrate, upgrades

    async def begin() -> tuple[Any, Any]:
        store = store_on(url)
        claimed = await owned_run(store)
        idle = await start_runs(store, 1, of=claimed.version)
        await store.close()
        return claimed, idle[0]

    def rename(fields: dict[str, Any]) -> dict[str, Any]:
        return {**fields, "starter": "upgraded"}

    async def go_on(claimed: Any, idle: Any) -> None:
        assert (await db_status(url, emulator=proxy.host)) == (1, 2)
        store = store_on(url)
        assert (
            await store.commit(ANN, [changes(claimed, tasks=(task("extract", TaskStatus.SUCCESS),))], NOW)
        ).fenced == frozenset()
        assert await store.get_starter(claimed.run.id) == "upgraded"
        assert (await migrate(url, emulator=proxy.host)) == (2, 2)
        assert await store.get_starter(idle.id) == "upgraded"
        assert (await store.run_updates(claimed.run.id)).tasks[0].status is TaskStatus.SUCCESS
        await store.close()

    claimed, idle = asyncio.run(begin())
    with monkeypatch.context() as patch:
        patch.setattr(upgrades, "STEPS", [rename])
        asyncio.run(go_on(claimed, idle))


def test_a_database_of_a_newer_ork_is_refused(proxy: Any, url: str, tmp_path: Path, monkeypatch: Any) -> None:
    from ork.state.firestore import migrate, upgrades

    with monkeypatch.context() as patch:
        patch.setattr(upgrades, "STEPS", [dict])
        asyncio.run(migrate(url, emulator=proxy.host))
    assert "this Ork knows schemas up to 1" in ork(url, tmp_path, "runs", fails=True)


# ── limits ───────────────────────────────────────────────────────────────────────────────────────

SLOTS = {"*": 10, "pool:api": 4}


async def _scheduler(url: str, name: str, busy: asyncio.Event, numbers: Iterator[int]) -> None:
    """Claims, launches and ends attempts. Now and then it is silent for longer than its lease, and then goes on as before."""
    from random import Random

    random, store = Random(name), store_on(url, lease_seconds=0.5)
    who: Any = name
    held: dict[RunId, tuple[Any, dict[int, Any]]] = {}
    await register(store, who)
    while not busy.is_set():
        if random.random() < 0.1:
            await asyncio.sleep(0.8)
        elif not await store.renew(who):
            held.clear()
            await register(store, who)
        for claimed in (await store.claim_runs(who, 2, NOW)).runs:
            held[claimed.run.id] = claimed, {each.key.number: each for each in claimed.attempts}
        for run, (claimed, active) in [*held.items()]:
            over = [each for each in active.values() if random.random() < 0.5]
            launches = [
                launch_request(run, "extract", number=next(numbers), pool=random.choice((None, "api")))
                for _ in range(random.randrange(4))
            ]
            finals = tuple(replaced(each, status=AttemptStatus.SUCCESS) for each in over)
            row = replaced(claimed.run, status=RunStatus.RUNNING)
            answer = await store.commit(who, [RunChanges(run, claimed.epoch, row, (), finals, tuple(launches))], NOW)
            if answer.fenced:
                del held[run]
                continue
            for each in over:
                del active[each.key.number]
            active |= {
                each.attempt.key.number: each.attempt for each in launches if each.attempt.key in answer.admitted
            }
    await store.close()


def test_no_limit_is_exceeded_by_four_schedulers_of_which_some_vanish_and_wake(url: str) -> None:
    asyncio.run(_four_schedulers(url))


async def _four_schedulers(url: str) -> None:
    from itertools import count

    from ork.state.firestore.documents import FACTS, run_state
    from ork.state.firestore.wire import Query

    watcher = store_on(url)
    await watcher.set_limits(SLOTS)
    await start_runs(watcher, 8)
    busy, numbers = asyncio.Event(), count(1)
    schedulers = [asyncio.create_task(_scheduler(url, name, busy, numbers)) for name in ("ann", "ben", "cat", "dan")]
    peaks = dict.fromkeys(SLOTS, 0)
    for _ in range(60):
        docs = await watcher._db.wire.query(Query("runs", (("busy", "==", True),), (), None, FACTS))  # one moment
        kinds = [kind for doc in docs for kind in run_state(doc).act.values()]
        peaks["*"] = max(peaks["*"], len(kinds))
        peaks["pool:api"] = max(peaks["pool:api"], sum(kind.endswith("\tapi") for kind in kinds))
        await asyncio.sleep(0.1)
    busy.set()
    await asyncio.gather(*schedulers)
    assert peaks["*"] <= 10
    assert peaks["pool:api"] <= 4
    assert min(peaks.values()) > 2  # it was tried
    used = {use.name: use.used for use in await watcher.limit_use()}
    docs = await watcher._db.wire.query(Query("runs", (("busy", "==", True),), (), None, FACTS))
    assert used["*"] == sum(len(run_state(doc).act) for doc in docs)  # nothing leaked
    await watcher.close()


def test_who_waits_is_woken_by_a_change_of_another_handle(url: str) -> None:
    asyncio.run(_wake(url))


async def _wake(url: str) -> None:
    here, there = store_on(url), store_on(url)
    flow = await deploy(here)
    await here.wait_for_change(0.2)
    waiting = asyncio.create_task(here.wait_for_change(60))
    await there.create_runs([new_run(flow)], NOW)
    assert await asyncio.wait_for(waiting, 60)
    await here.close()
    await there.close()


def test_the_newest_success_under_a_cache_key_is_found_until_its_run_is_deleted(url: str) -> None:
    async def go() -> None:
        store = store_on(url)
        for number in range(2):
            claimed = await owned_run(store)
            done = task(
                "extract",
                TaskStatus.SUCCESS,
                cache_key="k",
                finished_at=later(number),
                output=InlineOutput(f"{number}"),
            )
            await store.commit(ANN, [ended(claimed, tasks=(done,))], later(number))
        found = await store.find_cached("k", NOW)
        assert (found.run, found.output) == (claimed.run.id, InlineOutput("1"))
        assert await store.find_cached("k", later(2)) is None
        assert await store.find_cached("other", NOW) is None
        assert len(await store.prune(later(99), 10)) == 2
        assert await store.find_cached("k", NOW) is None
        await store.close()

    asyncio.run(go())


def test_sweeping_a_forgotten_run_leaves_no_document_of_it(proxy: Any, url: str) -> None:
    async def go() -> None:
        from ork.state.firestore.wire import Query

        store, claimed, _ = await _wide_run(url, 600)
        large = tuple(task("wide", index=index, reason="long" * 1000) for index in range(20))
        await store.commit(ANN, [ended(claimed, tasks=large)], NOW)
        (run,) = await store.prune(later(99), 10)
        assert await store.run_updates(run) is None
        await store.swept([run])
        assert await store.leftovers(10) == ()
        for name in ("chunks", "big", "notes"):
            assert await store._db.wire.query(Query(name, under=f"runs/{run}")) == []
        await store.close()

    asyncio.run(go())
