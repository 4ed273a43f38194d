"""Firestore with lost answers, refusals and latency: every commit is carried out once, and everything comes to its end."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ork.core.effects import Alert
from ork.errors import StoreUnavailableError
from ork.model.notice import NoticeKind
from ork.model.run import CommandKind, RunStatus
from ork.model.task import Failure, FailureKind, TaskStatus
from ork.state.records import Accepted, RunFilter
from tests.conformance.state_samples import (
    ANN,
    NOW,
    changes,
    claim,
    command,
    deploy,
    launch_request,
    new_run,
    owned_run,
    register,
    task,
)
from tests.integration.firestore.test_firestore import THREE
from tests.integration.firestore.world import ork, store_on

pytestmark = pytest.mark.slow

FAULTS = ["after", "before", "aborted"]
FAN_OUT = """
name: fan
tasks:
  many: {command: "true", parallel: 20}
  last: {command: "true", depends_on: [many]}
"""


def every_third(fault: str) -> Any:
    """Every third request of each kind; only commits are aborted."""
    return lambda method, number: fault if number % 3 == 0 and (fault != "aborted" or method == "Commit") else None


def runs_of(url: str, folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ork(url, folder, "runs", "--json"))["runs"]
    return found


@pytest.mark.parametrize("fault", FAULTS)
def test_runs_ticks_and_fan_outs_end_when_every_third_request_fails(
    proxy: Any,
    url: str,
    tmp_path: Path,
    fault: str,
) -> None:
    proxy.fault, proxy.latency = every_third(fault), 0.01
    for name, text in (("three", THREE), ("fan", FAN_OUT)):
        (tmp_path / f"{name}.yaml").write_text(text)
        ork(url, tmp_path, "run", f"{name}.yaml")
    ork(url, tmp_path, "run", "--detach", "three.yaml")
    for _ in range(30):  # each of them ends; together they bring the run to its end
        ork(url, tmp_path, "tick")
        runs = runs_of(url, tmp_path)
        if all(run["status"] == "success" for run in runs):
            break
    assert [run["status"] for run in runs] == ["success"] * 3
    assert proxy.check_documents(url) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_schedule_fires_each_time_once_when_every_third_request_fails(
    proxy: Any,
    url: str,
    tmp_path: Path,
    fault: str,
) -> None:
    (tmp_path / "workflow.yaml").write_text('name: often\nschedule: "* * * * *"\ntasks:\n  only: {command: "true"}\n')
    ork(url, tmp_path, "deploy", "workflow.yaml")
    due = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=1)

    async def plan_in_the_past() -> None:
        store = store_on(url)
        (entry,) = await store.list_schedules()
        assert await store.fire("often", entry.next_fire, [], due, datetime.now(UTC))
        await store.close()

    asyncio.run(plan_in_the_past())
    proxy.fault, proxy.latency = every_third(fault), 0.01
    for _ in range(30):
        ork(url, tmp_path, "tick")
        runs = runs_of(url, tmp_path)
        if runs and all(run["status"] == "success" for run in runs):
            break
    times = [run["scheduled_for"] for run in runs]
    assert runs
    assert {run["status"] for run in runs} == {"success"}
    assert len(times) == len(set(times))


# ── one commit ───────────────────────────────────────────────────────────────────────────────────


def once(fault: str, method: str = "Commit") -> Any:
    """The next request of that kind fails so, and no other."""
    left = [fault]
    return lambda name, number: left.pop() if left and name == method else None


@pytest.mark.parametrize("fault", FAULTS)
def test_a_commit_whose_answer_is_lost_is_carried_out_once(proxy: Any, url: str, fault: str) -> None:
    async def go() -> None:
        store = store_on(url)
        await store.set_limits({"*": 1})
        claimed = await owned_run(store)
        mark = (await store.run_updates(claimed.run.id)).mark
        before = store._db.runs[claimed.run.id].n
        asked = launch_request(claimed.run.id, "extract")
        alert = Alert(None, Failure(FailureKind.EXIT, "exited with 1"))
        proxy.fault = once(fault)
        answer = await store.commit(ANN, [changes(claimed, launches=(asked,), alerts=(alert,))], NOW)
        assert answer.admitted == {asked.attempt.key}
        assert [row.status for row in (await store.run_updates(claimed.run.id, mark)).tasks] == [TaskStatus.DISPATCHED]
        assert [use.used for use in await store.limit_use()] == [1]
        assert [notice.kind for notice in await store.take_alerts(9, NOW)] == [NoticeKind.RUN]
        await store.commit(ANN, [changes(claimed, tasks=(task("load", TaskStatus.SKIPPED),))], NOW)
        assert store._db.runs[claimed.run.id].n == before + 2
        await store.close()

    asyncio.run(go())


@pytest.mark.parametrize("fault", FAULTS)
def test_other_verbs_whose_answer_is_lost_are_carried_out_once(proxy: Any, url: str, fault: str) -> None:
    async def go() -> None:
        store = store_on(url)
        flow = await deploy(store)
        await register(store, ANN)
        proxy.fault = once(fault)
        (run,) = await store.create_runs([new_run(flow, key="once")], NOW)
        assert [each.id for each in (await store.list_runs(RunFilter())).runs] == [run.id]
        proxy.fault = once(fault)
        answer = await store.submit_command(command(run.id, CommandKind.CANCEL), NOW)
        assert isinstance(answer, Accepted)
        assert [each.id for each in await store.pending_commands(run.id)] == [answer.command_id]
        proxy.fault = once(fault)
        (claimed,) = await claim(store)
        assert claimed.epoch == 1
        proxy.fault = once(fault)
        assert await store.renew(ANN)
        await store.close()

    asyncio.run(go())


def test_who_cannot_tell_whether_a_commit_was_carried_out_says_so(proxy: Any, url: str) -> None:
    """The answer is lost, and before anybody looks a person writes the document: its nonce is gone."""

    async def go() -> None:
        store, people = store_on(url), store_on(url)
        claimed = await owned_run(store)
        await people.list_workflows()

        looked = store._db.wire.get

        async def look_late(path: str) -> Any:
            await people.submit_command(command(claimed.run.id, CommandKind.PAUSE), NOW)
            return await looked(path)

        store._db.wire.get = look_late
        proxy.fault = once("after")
        with pytest.raises(StoreUnavailableError):
            await store.commit(ANN, [changes(claimed, tasks=(task("load", TaskStatus.SKIPPED),))], NOW)
        await store.close()
        await people.close()

    asyncio.run(go())


def test_runs_end_while_requests_take_time_and_fail_at_random(proxy: Any, url: str, tmp_path: Path) -> None:
    from random import Random

    random = Random(7)
    proxy.latency = 0.02
    proxy.fault = lambda method, number: random.choice(FAULTS) if method == "Commit" and random.random() < 0.3 else None
    (tmp_path / "fan.yaml").write_text(FAN_OUT)
    ork(url, tmp_path, "run", "fan.yaml")
    assert [run["status"] for run in runs_of(url, tmp_path)] == [RunStatus.SUCCESS.value]
