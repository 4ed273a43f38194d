"""The calendar of schedules, and the preview of a backfill."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from ork.api.routing import PREFIX
from ork.model.access import Role
from ork.model.ids import RunId
from ork.model.record import replaced
from ork.model.run import NewRun, RunStatus
from ork.model.workflow import Schedule, Trigger
from ork.state.records import RunChanges
from ork.status import calendar
from tests.unit.api.conftest import ANN, NOW, Bench, workflow
from tests.unit.api.test_run_reads import BOTH, at, with_store

DAILY = Schedule("0 2 * * *")
EARLY = NOW - timedelta(days=30)


def day(number: int) -> datetime:
    """The time of the schedule on a day of February."""
    return datetime(2026, 2, number, 2, tzinfo=UTC)


async def shown(client: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    answer = await client.get(f"{PREFIX}/calendar", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def deploy(bench: Bench, name: str, schedule: Schedule, now: datetime = EARLY, **options: Any) -> str:
    version = workflow(name, schedule=schedule, **options)
    await bench.store.save_version(version, origin=None, now=now, next_fire=day(28))
    return version.id


async def fired(bench: Bench, name: str, version: str, id: str, time: datetime) -> None:
    new = NewRun(RunId(id), name, version, {}, Trigger.SCHEDULE, time)  # type: ignore[arg-type]
    await bench.store.create_runs([new], time)


@BOTH
async def test_a_calendar_has_runs_missed_due_and_future_times(bench: Bench, kind: str) -> None:
    async with with_store(bench, kind) as used, await used.client(Role.VIEWER) as client:
        object.__setattr__(used.api, "now", lambda: day(28) + timedelta(minutes=1))
        version = await deploy(used, "daily", DAILY)
        await fired(used, "daily", version, "00000000000a", day(26))
        found = await shown(client, **{"from": "2026-02-26T00:00:00Z", "to": "2026-03-02T00:00:00Z"})
        (row,) = found["workflows"]
        assert [each["state"] for each in row["times"]] == ["run", "missed", "due", "planned"]
        assert row["times"][0]["run"]["id"] == "00000000000a"
        assert (found["partial"], found["cursor"], row["notes"]) == (False, None, [])
        none = await shown(
            client, **{"from": "2026-02-26T00:00:00Z", "to": "2026-02-27T00:00:00Z", "workflow": "daily"}
        )
        assert len(none["workflows"][0]["times"]) == 1


@BOTH
async def test_times_before_the_schedule_was_deployed_are_not_missed(bench: Bench, kind: str) -> None:
    async with with_store(bench, kind) as used, await used.client(Role.VIEWER) as client:
        object.__setattr__(used.api, "now", lambda: NOW)
        old = await deploy(used, "daily", Schedule("0 4 * * *"))
        await fired(used, "daily", old, "00000000000a", day(23) + timedelta(hours=2))
        await deploy(used, "daily", DAILY, day(25) - timedelta(hours=1))
        found = await shown(client, **{"from": "2026-02-22T00:00:00Z", "to": "2026-02-27T00:00:00Z"})
        times = [(each["time"][:13], each["state"]) for each in found["workflows"][0]["times"]]
        assert times == [("2026-02-23T04", "run"), ("2026-02-25T02", "missed"), ("2026-02-26T02", "missed")]


async def test_a_disabled_schedule_has_no_future_and_a_clock_change_has_a_note(bench: Bench) -> None:
    object.__setattr__(bench.api, "now", lambda: NOW)
    await deploy(bench, "night", Schedule("30 2 * * *", "Europe/Berlin"))
    await deploy(bench, "off", Schedule("0 2 * * *", enabled=False))
    async with await bench.client(Role.VIEWER) as client:
        found = await shown(client, **{"from": "2026-03-28T00:00:00Z", "to": "2026-03-31T00:00:00Z"})
        night, off = found["workflows"]
        (note,) = night["notes"]
        assert (note["kind"], note["local"]) == ("skipped", "2026-03-29T02:30:00")
        assert note["text"] == "there is no 02:30 on 2026-03-29 in Europe/Berlin: it fires at 03:00 instead"
        assert note["fires"] == ["2026-03-29T01:00:00.000000Z"]
        assert (off["enabled"], off["times"]) == (False, [])
        autumn = await shown(client, **{"from": "2026-10-24T00:00:00Z", "to": "2026-10-27T00:00:00Z"})
        (note,) = autumn["workflows"][0]["notes"]
        assert (note["kind"], note["text"].endswith("it fires once")) == ("repeated", True)


async def test_a_calendar_says_what_it_leaves_out(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    object.__setattr__(bench.api, "now", lambda: NOW)
    for name in ("a", "b", "c"):
        await deploy(bench, name, Schedule("* * * * *"))
    span = {"from": "2026-03-02T00:00:00Z", "to": "2026-03-04T00:00:00Z"}
    async with await bench.client(Role.VIEWER) as client:
        found = await shown(client, **span, workflow="a")
        (row,) = found["workflows"]
        assert (len(row["times"]), row["partial"], row["until"]) == (1000, True, "2026-03-02T16:40:00.000000Z")
        assert found["partial"]
        early = await shown(client, **{"from": "2026-01-01T00:00:00Z", "to": span["to"]}, workflow="a")
        assert early["workflows"][0]["times"][0]["time"] == "2026-01-30T12:00:00.000000Z"  # when it was deployed
        monkeypatch.setattr(calendar, "MOST_TIMES", 1500)
        first = await shown(client, **span)
        assert ([row["workflow"] for row in first["workflows"]], first["cursor"]) == (["a", "b"], "b")
        assert [row["workflow"] for row in (await shown(client, **span, cursor="b"))["workflows"]] == ["c"]
        for wrong in ({"from": span["from"], "to": "2026-09-02T00:00:00Z"}, {"from": span["to"], "to": span["from"]}):
            assert (await client.get(f"{PREFIX}/calendar", params=wrong)).status_code == 400
        assert (await client.get(f"{PREFIX}/calendar", params={**span, "workflow": "nothing"})).status_code == 404


@BOTH
async def test_a_dry_backfill_says_which_times_have_a_run(bench: Bench, kind: str) -> None:
    async with with_store(bench, kind) as used, await used.client(Role.OPERATOR) as client:
        object.__setattr__(used.api, "now", lambda: NOW)
        version = await deploy(used, "daily", DAILY)
        await fired(used, "daily", version, "00000000000a", day(25))
        await used.store.register(ANN, "identity", "scheduler", NOW)
        (claimed,) = (await used.store.claim_runs(ANN, 10, NOW)).runs
        row = replaced(claimed.run, status=RunStatus.FAILED, started_at=NOW, finished_at=at(1))
        await used.store.commit(ANN, [RunChanges(row.id, claimed.epoch, row, release_ownership=True)], NOW)
        body = {"from": "2026-02-24T00:00:00Z", "to": "2026-02-26T00:00:00Z", "dry_run": True}
        found = (await client.post(f"{PREFIX}/workflows/daily/backfills", json=body)).json()
        assert [(each["state"], each["run"], each["status"]) for each in found["plan"]] == [
            ("new", None, None), ("exists", "00000000000a", "failed"),
        ]  # fmt: skip
        assert found["times"] == [each["time"] for each in found["plan"]]
        made = (await client.post(f"{PREFIX}/workflows/daily/backfills", json={**body, "dry_run": False})).json()
        assert (made["created"], made["plan"]) == (1, None)
