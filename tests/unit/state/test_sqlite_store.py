"""What the SQLite store promises beyond the contract: death at any moment, full disks, other processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ork.errors import StoreError, StoreUnavailableError
from ork.model.ids import RunId
from ork.model.record import replaced
from ork.model.run import RunStatus
from ork.model.task import InlineOutput, TaskStatus
from ork.state.records import RunFilter, RunUpdate
from ork.state.sqlite import SqliteStore
from ork.state.sqlite.database import boot_clock
from tests.conformance.state_samples import (
    ANN,
    BEN,
    NOW,
    changes,
    claim,
    deploy,
    new_run,
    owned_run,
    register,
    start_runs,
    task,
    version,
)

T = TypeVar("T")

KILLED_IN_COMMIT = """
import asyncio, os, signal, sys
from ork.model.record import replaced
from ork.model.run import RunStatus
from ork.model.task import TaskStatus
from ork.state.sqlite import SqliteStore
from tests.conformance.state_samples import ANN, NOW, changes, owned_run, task, launch_request

path, left = sys.argv[1], int(sys.argv[2])

def count(statement):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    store = SqliteStore(path, inline=True)
    claimed = await owned_run(store)
    store._db.connection._raw.set_trace_callback(count)
    run = replaced(claimed.run, status=RunStatus.PAUSED)
    what = dict(run=run, tasks=(task("extract", TaskStatus.SUCCESS),), launches=(launch_request(run.id, "load"),))
    await store.commit(ANN, [changes(claimed, **what)], NOW)
    print("committed")

asyncio.run(main())
"""

CREATE_A_RUN = """
import asyncio, sys
from ork.state.sqlite import SqliteStore
from tests.conformance.state_samples import start_runs

store = SqliteStore(sys.argv[1], inline=True)
asyncio.run(start_runs(store))
"""

CLAIM_AND_FINISH = """
import asyncio, sys
from ork.model.record import replaced
from ork.model.run import RunStatus
from ork.state.sqlite import SqliteStore
from ork.state.records import RunChanges
from tests.conformance.state_samples import NOW, register

async def main(path, me):
    store = SqliteStore(path)
    await register(store, me)
    while claimed := (await store.claim_runs(me, 3, NOW)).runs:
        for one in claimed:
            print(one.run.id, one.epoch)
        done = [RunChanges(c.run.id, c.epoch, replaced(c.run, status=RunStatus.SUCCESS), release_ownership=True) for c in claimed]
        committed = await store.commit(me, done, NOW)
        assert not committed.fenced, committed
    await store.close()

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


@pytest.fixture
def tests_on_path(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'src'}"}


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs what never yields, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as answer:
        return answer.value  # type: ignore[no-any-return]
    raise AssertionError("it yielded")


def updates(store: SqliteStore, run: RunId) -> RunUpdate:
    found = at_once(store.run_updates(run))
    assert found is not None
    return found


# ── death ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("statement", range(1, 10))
def test_a_commit_killed_before_any_of_its_statements_leaves_nothing_half_written(
    tmp_path: Path, tests_on_path: dict[str, str], statement: int
) -> None:
    path = tmp_path / "ork.db"
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_IN_COMMIT, str(path), str(statement)], env=tests_on_path, capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL, killed
    store = SqliteStore(path, inline=True)
    (run,) = at_once(store.list_runs(RunFilter())).runs
    assert run.status is RunStatus.RUNNING
    assert {t.status for t in updates(store, run.id).tasks} == {TaskStatus.PENDING}
    assert at_once(store.list_attempts(run.id)) == ()
    at_once(start_runs(store))


def test_a_lease_of_another_boot_has_run_out(tmp_path: Path) -> None:
    moment = ["first boot", 5000.0]
    store = SqliteStore(tmp_path / "ork.db", inline=True, clock=lambda: (str(moment[0]), float(moment[1])))
    claimed = at_once(owned_run(store))
    moment[:] = ["second boot", 10.0]
    at_once(register(store, BEN))
    assert [c.run.id for c in at_once(claim(store, BEN))] == [claimed.run.id]


def test_the_lease_clock_grows_and_knows_its_boot() -> None:
    (boot, first), (same_boot, second) = boot_clock(), boot_clock()
    assert boot == same_boot
    assert len(boot) == 36
    assert second >= first > 0


# ── failures ─────────────────────────────────────────────────────────────────────────────────────


def big_tasks(number: int) -> tuple[Any, ...]:
    return tuple(
        task("load", TaskStatus.SUCCESS, index, output=InlineOutput('"' + "x" * 4000 + '"')) for index in range(number)
    )


def test_a_full_disk_is_an_error_that_passes_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "ork.db", inline=True)
    claimed = at_once(owned_run(store))
    raw = store._db.connection._raw
    (pages,) = raw.execute("PRAGMA page_count").fetchone()
    raw.execute(f"PRAGMA max_page_count = {pages + 5}")
    failed = replaced(claimed.run, status=RunStatus.FAILED)
    with pytest.raises(StoreUnavailableError, match="no space left") as caught:
        at_once(store.commit(ANN, [changes(claimed, run=failed, tasks=big_tasks(50))], NOW))
    assert caught.value.hint
    assert updates(store, claimed.run.id).run.status is RunStatus.RUNNING
    assert updates(store, claimed.run.id).tasks == claimed.tasks
    raw.execute("PRAGMA max_page_count = 1073741823")
    at_once(store.commit(ANN, [changes(claimed, run=failed, tasks=big_tasks(50))], NOW))
    assert len(updates(store, claimed.run.id).tasks) == 52


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill_up(file: Path) -> None:
    with file.open("wb", buffering=0) as ballast, suppress(OSError):
        while ballast.write(b"x" * 4096):
            pass


def test_work_goes_on_when_a_really_full_disk_has_space_again(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        store = SqliteStore(disk / "ork.db", inline=True)
        claimed = at_once(owned_run(store))
        ballast = disk / "ballast"
        fill_up(ballast)
        with pytest.raises(StoreUnavailableError):
            at_once(store.commit(ANN, [changes(claimed, tasks=big_tasks(30))], NOW))
        assert updates(store, claimed.run.id).tasks == claimed.tasks
        ballast.unlink()
        at_once(store.commit(ANN, [changes(claimed, tasks=big_tasks(30))], NOW))
        assert len(updates(store, claimed.run.id).tasks) == 32
        at_once(store.close())


def test_a_lock_held_by_another_process_is_waited_for_and_then_an_error_that_passes(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "ork.db", inline=True)
    flow = at_once(deploy(store))
    store._db.connection._raw.execute("PRAGMA busy_timeout = 10")
    other = sqlite3.connect(tmp_path / "ork.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailableError, match="locked by another process"):
        at_once(store.create_runs([new_run(flow)], NOW))
    assert at_once(store.list_runs(RunFilter())).runs == ()
    other.execute("ROLLBACK")
    other.close()
    at_once(store.create_runs([new_run(flow)], NOW))


def test_a_damaged_file_is_an_error_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "ork.db"
    at_once(start_runs(store := SqliteStore(path, inline=True), 200))
    at_once(store.close())
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="damaged"):
        at_once(SqliteStore(path, inline=True).list_workflows())


def test_a_closed_store_answers_with_an_error_of_ours(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "ork.db", inline=True)
    at_once(store.close())
    with pytest.raises(StoreError, match="closed"):
        at_once(store.list_workflows())


# ── ways to run ──────────────────────────────────────────────────────────────────────────────────


def test_an_inline_store_never_yields() -> None:
    store = SqliteStore(":memory:", inline=True)
    claimed = at_once(owned_run(store.sibling()))
    assert at_once(store.wait_for_change(None))
    assert at_once(store.get_run(claimed.run.id)) == claimed.run


def test_a_sibling_that_is_closed_leaves_the_others_open() -> None:
    store = SqliteStore(":memory:", inline=True)
    at_once(store.sibling().close())
    assert at_once(store.list_workflows()) == ()


def test_only_an_inline_store_has_siblings(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        SqliteStore(tmp_path / "ork.db").sibling()


def test_what_was_asked_for_is_done_even_if_nobody_waits_for_it_any_more(tmp_path: Path) -> None:
    async def scene() -> None:
        store = SqliteStore(tmp_path / "ork.db")
        asking = asyncio.ensure_future(deploy(store, "wanted"))
        await asyncio.sleep(0)
        asking.cancel()
        assert await store.get_workflow("wanted") is not None
        await store.close()

    asyncio.run(scene())


@pytest.mark.parametrize(("durability", "number"), [("normal", 1), ("full", 2)])
def test_durability_decides_whether_a_commit_waits_for_the_disk(tmp_path: Path, durability: Any, number: int) -> None:
    store = SqliteStore(tmp_path / "ork.db", inline=True, durability=durability)
    raw = store._db.connection._raw
    assert raw.execute("PRAGMA synchronous").fetchone() == (number,)
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_without_limits_nothing_is_counted(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "ork.db", inline=True)
    claimed = at_once(owned_run(store))
    seen: list[str] = []
    store._db.connection._raw.set_trace_callback(seen.append)
    at_once(store.commit(ANN, [changes(claimed, tasks=(task("load"),))], NOW))
    assert not any("count(" in statement for statement in seen)


def test_a_look_that_finds_nothing_takes_no_write_lock(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "ork.db", inline=True)
    at_once(register(store, ANN))
    other = sqlite3.connect(tmp_path / "ork.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert at_once(claim(store)) == []
    other.close()


def test_importing_the_store_loads_no_event_loop() -> None:
    code = "import sys, ork.state.sqlite; print({'asyncio', 'socket', 'importlib.resources'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "set()\n"


def test_the_version_of_a_run_is_decoded_once(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "ork.db", inline=True)
    flow = version()
    at_once(store.save_version(flow, origin=None, now=NOW))
    assert at_once(store.get_version(flow.id)) is at_once(store.get_version(flow.id))


# ── several processes ────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_processes_that_claim_at_the_same_time_never_get_the_same_run(
    tmp_path: Path, tests_on_path: dict[str, str]
) -> None:
    path = tmp_path / "ork.db"
    store = SqliteStore(path, inline=True)
    runs = {run.id for run in at_once(start_runs(store, 600))}
    claimers = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIM_AND_FINISH, str(path), f"scheduler-{number}"],
            env=tests_on_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(4)
    ]  # fmt: skip
    answers = [claimer.communicate() for claimer in claimers]
    assert [error for _, error in answers] == [""] * 4
    claimed = [line.split() for output, _ in answers for line in output.splitlines()]
    assert len(claimed) == len(runs)
    assert {run for run, _ in claimed} == runs
    assert {epoch for _, epoch in claimed} == {"1"}
    assert {run.status for run in at_once(store.list_runs(RunFilter(limit=1000))).runs} == {RunStatus.SUCCESS}


def test_a_commit_of_another_process_wakes_who_waits(
    tmp_path: Path, tests_on_path: dict[str, str], monkeypatch
) -> None:
    # So long between looks that only the datagram can have brought the news.
    monkeypatch.setattr("ork.state.sqlite.wake.LOOK_SECONDS", 3600.0)
    path = tmp_path / ("long" * 40) / "ork.db"

    async def scene() -> bool:
        store = SqliteStore(path)
        assert not await store.wait_for_change(0)
        waiting = asyncio.ensure_future(store.wait_for_change(None))
        other = await asyncio.create_subprocess_exec(sys.executable, "-c", CREATE_A_RUN, str(path), env=tests_on_path)
        woken = await asyncio.wait_for(waiting, 60)
        await other.wait()
        assert len((await store.list_runs(RunFilter())).runs) == 1
        await store.close()
        return woken

    assert asyncio.run(scene())
    assert list((path.parent / "wake").iterdir()) == []
