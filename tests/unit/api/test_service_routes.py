"""What the routes answer about services, tokens, the audit trail and schedules."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from ork.api.tokens import digest_of, make_token
from ork.model.access import Role
from ork.model.ids import SchedulerId
from ork.model.workflow import Schedule, Trigger
from ork.objects.documents import token_hash, wake_proof
from ork.state.records import RunFilter
from ork.telemetry import TelemetryEvent
from tests.unit.api.conftest import NOW, Bench, worked_on

YAML = "name: posted\ntasks:\n  a: {command: 'true'}\n  b: {command: 'true', depends_on: [a]}\n"


async def test_schedulers_limits_status_and_metrics_answer(bench: Bench) -> None:
    await worked_on(bench)
    await bench.store.set_limits({"*": 4})
    async with await bench.client(Role.VIEWER) as client:
        (scheduler,) = (await client.get("/api/v1/schedulers")).json()["schedulers"]
        assert (scheduler["id"], scheduler["runs"], scheduler["alive"]) == ("ann", 1, True)
        assert (await client.get("/api/v1/limits")).json()["limits"][0]["slots"] == 4
        status = (await client.get("/api/v1/status")).json()
        assert (status["unfinished"]["running"], status["waiting"], status["oldest_waiting"]["task"]) == (1, 1, "load")
        for path in ("/metrics", "/api/v1/metrics"):
            metrics = (await client.get(path)).text
            assert 'ork_runs{status="running"} 1.0' in metrics
            assert 'ork_limit_slots{limit="*"} 4.0' in metrics


async def test_events_are_counted_under_their_name_and_the_name_of_the_last_release(bench: Bench) -> None:
    bench.api.telemetry.emit(TelemetryEvent.READY)
    async with await bench.client(Role.VIEWER) as client:
        lines = (await client.get("/metrics")).text.splitlines()
    assert {f'{name}{{event="ready"}} 1.0' for name in ("ork_events_total", "ork_happenings_total")} <= set(lines)


async def test_schedulers_are_counted_by_what_is_known_of_them(bench: Bench) -> None:
    """All of them hold a lease, but `ork run` does nothing for the installation."""
    for name, kind in (("ann", "scheduler"), ("ben", "tick"), ("eva", "run")):
        await bench.store.register(SchedulerId(name), f"{name}/boot/1/1/1", kind, NOW)
    async with await bench.client(Role.VIEWER) as client:
        lines = (await client.get("/metrics")).text.splitlines()
    known = "Schedulers and ticks known to be alive: their lease is valid, or their process runs on this machine."
    assert {"ork_schedulers 2.0", "ork_schedulers_unverified 0.0", f"# HELP ork_schedulers {known}"} <= set(lines)


async def test_an_admin_pauses_and_resumes_schedulers_and_everybody_sees_it(bench: Bench) -> None:
    async with await bench.client(Role.OPERATOR) as client:
        assert (await client.put("/api/v1/controls/*", json={"mode": "paused"})).status_code == 403
    async with await bench.client() as client:
        made = (await client.put("/api/v1/controls/*", json={"mode": "paused", "reason": "swap"})).json()
        assert (made["target"], made["mode"], made["reason"]) == ("*", "paused", "swap")
        assert (await client.get("/api/v1/controls")).json() == {"controls": [made]}
        assert (await client.get("/api/v1/status")).json()["controls"] == [made]
        for target, body in (("a%2Fb", {"mode": "paused"}), ("host", {"mode": "asleep"}), ("host", {})):
            assert (await client.put(f"/api/v1/controls/{target}", json=body)).status_code in (400, 404, 422)
        assert (await client.delete("/api/v1/controls/*")).status_code == 204
        assert (await client.delete("/api/v1/controls/*")).status_code == 404
        shown = await client.get("/api/v1/audit")
        assert shown.status_code == 200, shown.text
        entries = shown.json()["entries"]
        assert [(entry["action"], entry["detail"]) for entry in entries] == [
            ("scheduler.resume", None),
            ("scheduler.pause", {"reason": "swap"}),
        ]
    assert await bench.store.list_controls() == ()


async def test_a_target_is_named_as_on_the_command_line(bench: Bench) -> None:
    for number, host in enumerate(("vm+aa11", "twin+bb22", "twin+cc33")):
        identity = f"{host}/boot/4026531836/1/1"
        await bench.store.register(SchedulerId(f"sched{number}xyz"), identity, "scheduler", NOW)
    async with await bench.client() as client:

        async def put(target: str) -> tuple[int, str]:
            done = await client.put(f"/api/v1/controls/{target}", json={"mode": "paused"})
            return done.status_code, str(done.json().get("target"))

        assert await put("vm") == (200, "vm+aa11")
        assert await put("twin+bb22") == (200, "twin+bb22")
        assert await put("sched1") == (200, "sched1xyz")
        assert [(await put(target))[0] for target in ("twin", "sched", "nobody")] == [400, 400, 404]
        held = {row["target"] for row in (await client.get("/api/v1/controls")).json()["controls"]}
        assert held == {"vm+aa11", "twin+bb22", "sched1xyz"}
        for target in ("vm", "twin", "sched1"):
            assert (await client.delete(f"/api/v1/controls/{target}")).status_code == 204
        audited = [entry["subject"] for entry in (await client.get("/api/v1/audit")).json()["entries"]]
    assert audited[:3] == ["sched1xyz", "twin+bb22", "vm+aa11"]
    assert await bench.store.list_controls() == ()


async def test_tick_does_a_pass_and_wake_begins_one_where_no_scheduler_runs(bench: Bench) -> None:
    async with await bench.client(Role.OPERATOR) as client:
        assert (await client.post("/api/v1/tick")).json() == {
            "steps": 1, "launched": 0, "finished": 0, "next_wake": None,
        }  # fmt: skip
        answer = await client.post("/api/v1/wake")
        assert (answer.status_code, answer.json()) == (202, {"woken": "tick"})
        await asyncio.sleep(0)
    assert bench.woken == ["tick", "tick"]


async def test_tokens_are_made_told_once_listed_and_revoked(bench: Bench) -> None:
    async with await bench.client() as client:
        made = (await client.post("/api/v1/tokens", json={"name": "ci", "role": "viewer"})).json()
        listed = await client.get("/api/v1/tokens")
        assert made["token"] not in listed.text
        assert "digest" not in listed.text
        theirs = {"Authorization": f"Bearer {made['token']}"}
        assert (await client.get("/api/v1/runs", headers=theirs)).status_code == 200
        assert (await client.get("/api/v1/tokens", headers=theirs)).status_code == 403
        assert (await client.delete(f"/api/v1/tokens/{made['id']}")).status_code == 204
        assert (await client.get("/api/v1/runs", headers=theirs)).status_code == 401
        assert (await client.delete(f"/api/v1/tokens/{made['id']}")).status_code == 404
        assert (await client.post("/api/v1/tokens", json={"name": "x", "role": "king"})).status_code == 400
        entries = (await client.get("/api/v1/audit")).json()["entries"]
        assert [entry["action"] for entry in entries] == ["sign_in.failed", "token.revoke", "token.create"]
        assert (entries[0]["by"], entries[0]["token"]) == ("ci", made["id"])


async def test_no_change_is_acknowledged_that_is_not_in_the_audit_trail(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ork.errors import StoreUnavailableError

    await bench.deploy()
    client = await bench.client()

    async def fail(_entry: object) -> None:
        raise StoreUnavailableError("busy")

    monkeypatch.setattr(bench.store, "record", fail)
    async with client:
        assert (await client.post("/api/v1/workflows/flow/runs")).status_code == 503
        assert (await client.patch("/api/v1/workflows/flow", json={"enabled": False})).status_code == 503


async def test_a_bug_of_ours_shows_no_insides(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_query: object) -> None:
        raise ZeroDivisionError("/secret/path")

    client = await bench.client()
    monkeypatch.setattr(bench.store, "list_runs", fail)
    async with client:
        answer = await client.get("/api/v1/runs")
    assert (answer.status_code, answer.json()["code"], "/secret" in answer.text) == (500, "ORK899", False)


# ── schedules ────────────────────────────────────────────────────────────────────────────────────


async def test_schedules_are_listed_switched_and_made_up_for(bench: Bench) -> None:
    await bench.deploy("plain")
    await bench.deploy("daily", schedule=Schedule("0 3 * * *", "Europe/Berlin"))
    async with await bench.client(Role.OPERATOR) as client:
        (listed,) = (await client.get("/api/v1/schedules?next=3")).json()["schedules"]
        assert (listed["workflow"], listed["enabled"], len(listed["next"])) == ("daily", True, 3)
        off = await client.patch("/api/v1/workflows/daily/schedule", json={"enabled": False})
        assert (off.status_code, off.json()["enabled"]) == (200, False)
        assert (await client.get("/api/v1/schedules")).json()["schedules"][0]["enabled"] is False
        assert (await client.patch("/api/v1/workflows/plain/schedule", json={"enabled": True})).status_code == 409
        span = {"from": "2026-01-01T00:00:00+01:00", "to": "2026-01-05T00:00:00+01:00"}
        path = "/api/v1/workflows/daily/backfills"
        looked = (await client.post(path, json={**span, "dry_run": True})).json()
        assert (looked["created"], looked["times"][0]) == (0, "2026-01-01T02:00:00.000000Z")
        assert (await client.post(path, json=span)).json() == {"created": 4, "total": 4, "times": None, "plan": None}
        assert (await client.post(path, json=span)).json()["created"] == 0
        slot = {"scheduled_for": "2026-01-05T02:00:00Z"}
        statuses = [(await client.post("/api/v1/workflows/daily/runs", json=slot)).status_code for _ in range(2)]
        assert statuses == [201, 200]
        for wrong in ({"from": "yesterday", "to": "now"}, {"from": "2026-01-01", "to": "2026-01-02"}, {}):
            assert (await client.post(path, json=wrong)).status_code == 400
        assert (await client.post("/api/v1/workflows/plain/backfills", json=span)).status_code == 409
    runs = (await bench.store.list_runs(RunFilter(workflow="daily"))).runs
    assert sorted(run.scheduled_for.day for run in runs if run.scheduled_for) == [1, 2, 3, 4, 5]
    assert {run.trigger for run in runs} == {Trigger.BACKFILL}


async def test_a_worker_may_wake_us_with_the_proof_of_its_attempt_and_do_nothing_else(bench: Bench) -> None:
    run = await worked_on(bench)
    known = (await bench.store.list_attempts(run.id))[1]
    named = f"{run.id}/extract/0/2"
    good = {"X-Ork-Attempt": named, "X-Ork-Proof": wake_proof(named, known.token_hash)}
    async with await bench.client(None) as client:
        assert (await client.post("/api/v1/wake", headers=good)).status_code == 202
        for wrong in (
            {**good, "X-Ork-Proof": wake_proof(named, token_hash("other"))},
            {**good, "X-Ork-Attempt": f"{run.id}/extract/0/1"},
            {**good, "X-Ork-Attempt": f"{run.id}/extract/1/2"},
            {**good, "X-Ork-Attempt": "nonsense"},
            {"X-Ork-Attempt": f"{run.id}/extract/0/2"},
        ):
            assert (await client.post("/api/v1/wake", headers=wrong)).status_code == 401, wrong
        assert (await client.post("/api/v1/tick", headers=good)).status_code == 401
        assert (await client.get("/api/v1/runs", headers=good)).status_code == 401


async def test_a_token_expires_and_says_when_it_was_last_used(bench: Bench) -> None:
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    async with await bench.client() as client:
        body = {"name": "ci", "role": "viewer", "expires_at": soon}
        made = (await client.post("/api/v1/tokens", json=body)).json()
        assert (made["expires_at"][:16], made["last_used_at"]) == (soon[:16], None)
        for wrong in ("2020-01-01T00:00:00Z", "tomorrow", "2030-01-01T00:00:00"):
            assert (await client.post("/api/v1/tokens", json={**body, "expires_at": wrong})).status_code == 400
        theirs = {"Authorization": f"Bearer {made['token']}"}
        assert (await client.get("/api/v1/runs", headers=theirs)).status_code == 200
        (used,) = [each for each in (await client.get("/api/v1/tokens")).json()["tokens"] if each["id"] == made["id"]]
        assert used["last_used_at"] is not None
        before = await bench.store.list_tokens()
        assert (await client.get("/api/v1/runs", headers=theirs)).status_code == 200
        assert await bench.store.list_tokens() == before  # written at most every few minutes
        await bench.store.rotate_token(made["id"], make_token("ci", Role.VIEWER, NOW)[1], NOW, NOW)
        refused = await client.get("/api/v1/runs", headers=theirs)
        assert (refused.status_code, refused.json()["detail"]) == (401, "this token is expired")


async def test_a_rotated_token_and_its_successor_are_good_until_the_overlap_is_over(bench: Bench) -> None:
    async with await bench.client() as client:
        old = (await client.post("/api/v1/tokens", json={"name": "ci", "role": "viewer"})).json()
        answer = await client.post(f"/api/v1/tokens/{old['id']}/rotate")
        new = answer.json()
        assert (answer.status_code, new["name"], new["role"]) == (201, "ci", "viewer")
        for each in (old, new):
            theirs = {"Authorization": f"Bearer {each['token']}"}
            assert (await client.get("/api/v1/runs", headers=theirs)).status_code == 200
        body = {"until": datetime.now(UTC).isoformat()}
        newest = (await client.post(f"/api/v1/tokens/{new['id']}/rotate", json=body)).json()
        theirs = {"Authorization": f"Bearer {new['token']}"}
        assert (await client.get("/api/v1/runs", headers=theirs)).status_code == 401
        assert (await client.post(f"/api/v1/tokens/{new['id']}/rotate")).status_code == 404
        assert (await client.post("/api/v1/tokens/00/rotate")).status_code == 404
        entries = (await client.get("/api/v1/audit")).json()["entries"]
        rotated = [entry for entry in entries if entry["action"] == "token.rotate"]
        assert [entry["detail"]["by"] for entry in rotated] == [newest["id"], new["id"]]


async def test_the_audit_trail_names_the_token_and_the_address(bench: Bench) -> None:
    await bench.deploy()
    async with await bench.client(Role.OPERATOR) as client:
        assert (await client.post("/api/v1/workflows/flow/runs")).status_code == 201
    (token,) = await bench.store.list_tokens()
    (entry,) = await bench.store.list_audit()
    assert (entry.by, entry.token, entry.address) == ("the operator", token.id, "127.0.0.1")


async def test_a_weak_token_opens_nothing_even_if_its_digest_is_known(bench: Bench) -> None:
    async with await bench.client() as client:
        body = {"name": "x", "role": "admin", "digest": digest_of("changeme")}
        assert (await client.post("/api/v1/tokens", json=body)).status_code == 201
        refused = await client.get("/api/v1/runs", headers={"Authorization": "Bearer changeme"})
        assert (refused.status_code, refused.json()["detail"]) == (401, "this token is too easy to guess")


async def test_no_token_rotates_itself_away(bench: Bench) -> None:
    async with await bench.client() as client:
        (own,) = (await client.get("/api/v1/tokens")).json()["tokens"]
        body = {"until": datetime.now(UTC).isoformat()}
        refused = await client.post(f"/api/v1/tokens/{own['id']}/rotate", json=body)
        assert (refused.status_code, refused.json()["code"]) == (409, "ORK803")
        assert (await client.post(f"/api/v1/tokens/{own['id']}/rotate")).status_code == 201
        assert (await client.get("/api/v1/tokens")).status_code == 200
