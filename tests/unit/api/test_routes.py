"""What the routes answer."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time

import pytest

from ork.api.deploy import COMPILED
from ork.compile.content import to_document
from ork.model.access import Role
from ork.model.ids import AttemptKey, TaskKey
from ork.model.record import replaced
from ork.model.run import CommandKind, RunStatus
from ork.model.task import Attempt, AttemptStatus, GiveUp, StoredOutput, Task, TaskStatus
from ork.objects.layout import attempt_stem, log_key
from ork.state.records import RunChanges, RunFilter
from tests.unit.api.conftest import ANN, NOW, SECRET, Bench, worked_on, workflow

YAML = "name: posted\ntasks:\n  a: {command: 'true'}\n  b: {command: 'true', depends_on: [a]}\n"


# ── workflows ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["application/yaml", "text/plain", "application/json"])
async def test_a_workflow_is_posted_as_yaml_or_json_and_known_from_then_on(bench: Bench, kind: str) -> None:
    tasks = {"a": {"command": "true"}, "b": {"command": "true", "depends_on": ["a"]}}
    text = YAML if "json" not in kind else json.dumps({"name": "posted", "tasks": tasks})
    async with await bench.client() as client:
        first = await client.post("/api/v1/workflows", content=text, headers={"Content-Type": kind})
        again = await client.post("/api/v1/workflows", content=text, headers={"Content-Type": kind})
        assert (first.status_code, again.status_code) == (201, 200), first.text
        assert (first.json()["workflows"][0]["new"], again.json()["workflows"][0]["new"]) == (True, False)
        listed = (await client.get("/api/v1/workflows")).json()
        assert [entry["name"] for entry in listed["workflows"]] == ["posted"]
        shown = (await client.get("/api/v1/workflows/posted")).json()
        version = (await client.get(f"/api/v1/versions/{shown['version']}")).json()
        assert [task["name"] for task in version["definition"]["tasks"]] == ["a", "b"]
        assert version["root"] == str(bench.folder)
        versions = (await client.get("/api/v1/workflows/posted/versions")).json()["versions"]
        assert [entry["id"] for entry in versions] == [shown["version"]]


async def test_every_mistake_of_a_workflow_comes_back_with_its_place(bench: Bench) -> None:
    text = "name: x\ntasks:\n  a: {command: 'true', depends_on: [nobody]}\n  b: {nonsense: 1}\n"
    async with await bench.client() as client:
        answer = await client.post("/api/v1/workflows", content=text)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problems = answer.json()["problems"]
    assert len(problems) >= 2
    assert all(problem["line"] and problem["code"].startswith("ORK") for problem in problems)
    assert await bench.store.list_workflows() == ()


async def test_files_are_checked_where_the_root_is_and_trusted_where_it_is_not(bench: Bench) -> None:
    text = "name: x\ntasks:\n  a: {executor: python, file: there.py}\n"
    async with await bench.client() as client:
        missing = await client.post("/api/v1/workflows", content=text)
        trusted = await client.post("/api/v1/workflows?root=/nowhere/at/all", content=text)
        (bench.folder / "there.py").write_text("raise SystemExit('nobody runs me')\ndef main(): ...\n")
        found = await client.post("/api/v1/workflows", content=text)
    assert (missing.status_code, trusted.status_code, found.status_code) == (422, 201, 201), found.text


async def test_a_compiled_workflow_is_taken_only_if_a_compiler_could_have_made_it(bench: Bench) -> None:
    good = to_document(workflow("made").workflow)
    bad = [
        {**good, "name": "../x"},
        {**good, "tasks": []},
        {**good, "nonsense": 1},
        {**good, "tasks": [{**good["tasks"][0], "depends_on": ["load"]}, good["tasks"][1]]},
        {**good, "tasks": [{**good["tasks"][0], "depends_on": ["nobody"]}]},
        {},
        [],
        "text",
    ]
    async with await bench.client() as client:
        headers = {"Content-Type": COMPILED}
        for document in bad:
            answer = await client.post("/api/v1/workflows", content=json.dumps(document), headers=headers)
            assert answer.status_code in (400, 422), document
        assert (await client.post("/api/v1/workflows", content=json.dumps(good), headers=headers)).status_code == 201
    assert (await bench.store.get_version((await bench.store.list_versions("made"))[0].id)) is not None


async def test_a_workflow_is_disabled_enabled_and_deleted(bench: Bench) -> None:
    run = await bench.run()
    async with await bench.client() as client:
        off = await client.patch("/api/v1/workflows/flow", json={"enabled": False})
        assert (off.status_code, off.json()["enabled"]) == (200, False)
        assert (await client.patch("/api/v1/workflows/flow", json={"enabled": "no"})).status_code == 400
        assert (await client.patch("/api/v1/workflows/nobody", json={"enabled": True})).status_code == 404
        assert (await client.delete("/api/v1/workflows/flow")).status_code == 409
        await bench.store.register(ANN, "identity", "scheduler", NOW)
        (claimed,) = (await bench.store.claim_runs(ANN, 1, NOW)).runs
        ended = replaced(run, status=RunStatus.FAILED, finished_at=NOW)
        await bench.store.commit(ANN, [RunChanges(run.id, claimed.epoch, ended, release_ownership=True)], NOW)
        assert (await client.delete("/api/v1/workflows/flow")).status_code == 204
        assert (await client.get("/api/v1/workflows/flow")).status_code == 404
        assert (await client.get(f"/api/v1/runs/{run.id}")).status_code == 200


# ── triggers ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_trigger_fills_in_params_and_refuses_wrong_ones(bench: Bench) -> None:
    await bench.deploy()
    async with await bench.client(Role.OPERATOR) as client:
        made = await client.post("/api/v1/workflows/flow/runs", json={"params": {"n": 5}})
        plain = await client.post("/api/v1/workflows/flow/runs")
        assert (made.status_code, made.json()["params"]["n"], plain.json()["params"]["n"]) == (201, 5, 1)
        for params in ({"n": "five"}, {"m": 1}):
            wrong = await client.post("/api/v1/workflows/flow/runs", json={"params": params})
            assert (wrong.status_code, wrong.json()["code"]) == (400, "ORK403")
        assert (await client.post("/api/v1/workflows/nobody/runs")).status_code == 404
        for body in (b"[1]", b"{", b'{"params": {}, "params": {}}', b'{"params": {"n": NaN}}', b'{"other": 1}'):
            assert (await client.post("/api/v1/workflows/flow/runs", content=body)).status_code == 400, body


async def test_twenty_equal_triggers_at_once_with_one_key_make_one_run(bench: Bench) -> None:
    await bench.deploy()
    async with await bench.client(Role.OPERATOR) as client:
        headers = {"Idempotency-Key": "nightly"}
        body = {"params": {"n": 3}}
        answers = await asyncio.gather(
            *(client.post("/api/v1/workflows/flow/runs", json=body, headers=headers) for _ in range(20))
        )
        assert sorted({answer.status_code for answer in answers}) == [200, 201]
        assert len({answer.json()["id"] for answer in answers}) == 1
        other = await client.post("/api/v1/workflows/flow/runs", json={"params": {"n": 4}}, headers=headers)
        assert (other.status_code, other.json()["code"]) == (409, "ORK803")
    assert len((await bench.store.list_runs(RunFilter())).runs) == 1
    triggers = [entry for entry in await bench.store.list_audit() if entry.action == "run.trigger"]
    assert len(triggers) == 1


async def test_a_key_names_the_same_run_after_another_deploy(bench: Bench) -> None:
    await bench.deploy()
    async with await bench.client(Role.OPERATOR) as client:
        headers = {"Idempotency-Key": "k"}
        first = await client.post("/api/v1/workflows/flow/runs", headers=headers)
        await bench.deploy(description="another version")
        again = await client.post("/api/v1/workflows/flow/runs", headers=headers)
    assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])


def signed(body: bytes, moment: float | None = None, secret: str = SECRET) -> dict[str, str]:
    stamp = str(int(time.time() if moment is None else moment))
    digest = hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Ork-Signature": f"t={stamp},v1={digest}"}


async def test_a_signed_event_starts_its_workflow_once(bench: Bench) -> None:
    await bench.deploy()
    body = json.dumps({"n": 8, "other": "x"}).encode()
    headers = signed(body)
    async with await bench.client(None) as client:
        first = await client.post("/api/v1/hooks/flow", content=body, headers=headers)
        again = await client.post("/api/v1/hooks/flow", content=body, headers=headers)
        assert (first.status_code, again.status_code) == (201, 200), first.text
        assert first.json()["id"] == again.json()["id"]
        assert first.json()["params"] == {"n": 8, "event": {"n": 8, "other": "x"}}
        assert first.json()["trigger"] == "event"
    (entry,) = await bench.store.list_audit()
    assert (entry.by, entry.subject) == ("hook flow", first.json()["id"])


async def test_an_event_nobody_signed_or_signed_long_ago_is_refused(bench: Bench) -> None:
    await bench.deploy()
    await bench.deploy("secretless")
    body = b'{"n": 8}'
    hub = {"X-Hub-Signature-256": "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()}
    async with await bench.client(None) as client:
        for headers in ({}, signed(body, secret="other"), signed(body, time.time() - 600), signed(b"{}")):
            assert (await client.post("/api/v1/hooks/flow", content=body, headers=headers)).status_code == 401
        assert (await client.post("/api/v1/hooks/secretless", content=body, headers=signed(body))).status_code == 401
        assert (await client.post("/api/v1/hooks/flow", content=body, headers=hub)).status_code == 201
    async with await bench.client(Role.OPERATOR) as client:
        assert (await client.post("/api/v1/hooks/secretless", content=body)).status_code == 201


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────


async def test_runs_are_listed_page_by_page_and_filtered(bench: Bench) -> None:
    runs = [await bench.run(f"00000000000{n}") for n in range(5)]
    async with await bench.client(Role.VIEWER) as client:
        seen, cursor = [], None
        while True:
            query = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
            page = (await client.get("/api/v1/runs", params=query)).json()
            seen += [run["id"] for run in page["runs"]]
            cursor = page["cursor"]
            if cursor is None:
                break
        assert sorted(seen) == [run.id for run in runs]
        assert (await client.get("/api/v1/runs?status=failed")).json()["runs"] == []
        assert (await client.get("/api/v1/runs?workflow=other")).json()["runs"] == []
        for wrong in ("status=great", "limit=0", "limit=1001", "limit=x", "cursor=zz"):
            assert (await client.get(f"/api/v1/runs?{wrong}")).status_code in (400, 422), wrong
        assert (await client.get("/api/v1/run-ids?prefix=00000000000")).json()["ids"] == sorted(seen)


async def test_a_run_is_shown_with_tasks_attempts_graph_and_reasons(bench: Bench) -> None:
    run = await worked_on(bench)
    async with await bench.client(Role.VIEWER) as client:
        for name in (run.id, run.id[:11] + "a", "@last"):
            shown = (await client.get(f"/api/v1/runs/{name}")).json()
            assert [task["status"] for task in shown["tasks"]] == ["success", "pending"]
            assert [each["status"] for each in shown["tasks"][0]["attempts"]] == ["failed", "success"]
        update = (await client.get(f"/api/v1/runs/{run.id}/tasks")).json()
        assert update["tasks"][0]["output"] == {"rows": 12}
        assert (await client.get(f"/api/v1/runs/{run.id}/tasks?since={update['mark']}")).json()["tasks"] == []
        # Clients of release 0.1 send marks as numbers: 0 for everything, and a very large one for the run alone.
        assert (await client.get(f"/api/v1/runs/{run.id}/tasks?since=0")).json()["tasks"] == update["tasks"]
        assert (await client.get(f"/api/v1/runs/{run.id}/tasks?since={int(update['mark'])}")).json()["tasks"] == []
        assert (await client.get(f"/api/v1/runs/{run.id}/tasks?since={1 << 52}")).json()["tasks"] == []
        assert (await client.get(f"/api/v1/runs/{run.id}/tasks?since=yesterday")).status_code == 400
        graph = (await client.get(f"/api/v1/runs/{run.id}/graph")).json()
        assert [(node["name"], node["depends_on"]) for node in graph["nodes"]] == [
            ("extract", []),
            ("load", ["extract"]),
        ]
        assert (await client.get(f"/api/v1/runs/{run.id}/why?task=load")).json()["why"]
        assert len((await client.get(f"/api/v1/runs/{run.id}/attempts?task=extract")).json()["attempts"]) == 2
        cost = (await client.get(f"/api/v1/runs/{run.id}/cost")).json()
        assert (cost["estimate"], [(task["name"], task["attempts"]) for task in cost["tasks"]]) == (
            True,
            [("extract", 2)],
        )
        for path in ("", "/tasks", "/graph", "/why", "/attempts", "/commands", "/cost"):
            assert (await client.get(f"/api/v1/runs/zzzz{path}")).status_code == 404
        assert "hash" not in json.dumps(shown)


@pytest.mark.parametrize("kind", [CommandKind.CANCEL, CommandKind.PAUSE])
async def test_a_command_is_accepted_once_and_written_down(bench: Bench, kind: CommandKind) -> None:
    run = await worked_on(bench)
    async with await bench.client(Role.OPERATOR) as client:
        answer = await client.post(f"/api/v1/runs/{run.id}/{kind.value}")
        assert (answer.status_code, answer.json()["accepted"]) == (202, kind.value)
        assert (await client.post(f"/api/v1/runs/{run.id}/retry")).status_code == 409
        assert (await client.post("/api/v1/runs/zzzz/cancel")).status_code == 404
    (command,) = await bench.store.pending_commands(run.id)
    assert (command.kind, command.by) == (kind, "the operator")
    entry = (await bench.store.list_audit())[0]
    assert (entry.action, entry.subject, entry.by) == (f"run.{kind.value}", run.id, "the operator")


async def test_a_command_that_comes_too_late_is_refused_with_the_run(bench: Bench) -> None:
    run = await worked_on(bench, RunStatus.FAILED)
    async with await bench.client(Role.OPERATOR) as client:
        answer = await client.post(f"/api/v1/runs/{run.id}/cancel")
        assert (answer.status_code, answer.json()["run"]["status"]) == (409, "failed")
        assert (await client.post(f"/api/v1/runs/{run.id}/retry", json={"task": "nobody"})).status_code == 404
        assert (await client.post(f"/api/v1/runs/{run.id}/retry", json={"task": "load"})).status_code == 202
        assert (await client.post(f"/api/v1/runs/{run.id}/approve")).status_code in (400, 409)
    assert [entry.action for entry in await bench.store.list_audit()] == ["run.retry"]


async def test_an_attempt_is_declared_dead_only_while_it_is_being_given_up(bench: Bench) -> None:
    run = await worked_on(bench)
    load, epoch = TaskKey("load"), 1
    working = Attempt(
        AttemptKey(run.id, load, 1), AttemptStatus.RUNNING, "process", "name", "hash", NOW, started_at=NOW
    )

    async def write(attempt: Attempt) -> None:
        task = Task(load, TaskStatus.RUNNING, "process", 1, started_at=NOW)
        await bench.store.commit(ANN, [RunChanges(run.id, epoch, tasks=(task,), attempts=(attempt,))], NOW)

    async with await bench.client(Role.OPERATOR) as client:
        path = f"/api/v1/runs/{run.id}/declare-dead"
        assert (await client.post(path)).status_code == 400
        idle = await client.post(path, json={"task": "extract"})
        assert (idle.status_code, "`extract` has no running attempt" in idle.text) == (409, True)
        await write(working)
        early = await client.post(path, json={"task": "load"})
        assert (early.status_code, "has not been given up" in early.text) == (409, True)
        await write(replaced(working, closing=GiveUp.STALE, closing_since=NOW))
        said = await client.post(path, json={"task": "load"})
        assert (said.status_code, said.json()["accepted"]) == (202, "declare-dead")
    (command,) = await bench.store.pending_commands(run.id)
    assert (command.kind, command.task, command.by) == (CommandKind.DECLARE_DEAD, "load", "the operator")
    entry = (await bench.store.list_audit())[0]
    assert (entry.action, entry.detail) == ("run.declare-dead", '{"task": "load"}')


# ── logs and outputs ─────────────────────────────────────────────────────────────────────────────


async def test_a_log_is_read_whole_and_in_ranges(bench: Bench) -> None:
    run = await worked_on(bench)
    folder = attempt_stem(AttemptKey(run.id, TaskKey("extract"), 2))
    bench.objects.put(log_key(folder), b"0123456789\x1b[31m<b>\n")
    path = f"/api/v1/runs/{run.id}/tasks/extract/0/attempts"
    async with await bench.client(Role.VIEWER) as client:
        whole = await client.get(f"{path}/2/log")
        assert (whole.status_code, whole.content) == (200, b"0123456789\x1b[31m<b>\n")
        assert whole.headers["content-type"] == "text/plain; charset=utf-8"
        ranges = {"bytes=2-4": b"234", "bytes=15-": b"<b>\n", "bytes=-3": b"b>\n", "bytes=3-999": whole.content[3:]}
        for wanted, expected in ranges.items():
            part = await client.get(f"{path}/2/log", headers={"Range": wanted})
            assert (part.status_code, part.content) == (206, expected), wanted
        assert part.headers["content-range"] == "bytes 3-18/19"
        assert (await client.get(f"{path}/2/log", headers={"Range": "bytes=19-"})).status_code == 416
        for odd in ("lines=1-2", "bytes=4-2", "bytes=0-1,3-4", "bytes=-"):
            assert (await client.get(f"{path}/2/log", headers={"Range": odd})).status_code == 200
        assert (await client.get(f"{path}/1/log")).content == b""
        assert (await client.get(f"{path}/3/log")).status_code == 404
        assert (await client.get(f"/api/v1/runs/{run.id}/tasks/extract/1/attempts/1/log")).status_code == 404


async def test_outputs_are_given_as_they_were_returned(bench: Bench) -> None:
    run = await worked_on(bench)
    async with await bench.client(Role.VIEWER) as client:
        for path in ("extract/output", "extract/0/output"):
            answer = await client.get(f"/api/v1/runs/{run.id}/tasks/{path}")
            assert (answer.status_code, answer.text) == (200, '{"rows": 12}')
        assert (await client.get(f"/api/v1/runs/{run.id}/tasks/load/output")).status_code == 409
        assert (await client.get(f"/api/v1/runs/{run.id}/tasks/nobody/output")).status_code == 404


async def test_an_output_that_is_gone_from_the_object_store_is_an_error_not_half_an_answer(bench: Bench) -> None:
    run = await worked_on(bench)
    (claimed,) = [update for update in [await bench.store.run_updates(run.id)] if update]
    gone = replaced(claimed.tasks[0], output=StoredOutput("runs/x/extract/0/2/output.json", 9))
    epoch = 1
    await bench.store.commit(ANN, [RunChanges(run.id, epoch, tasks=(gone,))], NOW)
    async with await bench.client(Role.VIEWER) as client:
        assert (await client.get(f"/api/v1/runs/{run.id}/tasks/extract/output")).status_code == 404


# ── approvals ────────────────────────────────────────────────────────────────────────────────────


async def test_whoever_started_a_run_cannot_approve_it_where_the_workflow_says_so(bench: Bench) -> None:
    asks = "name: asking\ntasks:\n  ok: {approval: {message: Sure?, not_by: starter}}\n"
    async with await bench.client() as admin, await bench.client(Role.OPERATOR) as operator:
        await admin.post("/api/v1/workflows", content=asks, headers={"Content-Type": "application/yaml"})
        run = (await operator.post("/api/v1/workflows/asking/runs", json={})).json()["id"]
        await bench.store.register(ANN, "identity", "scheduler", NOW)
        (claimed,) = (await bench.store.claim_runs(ANN, 10, NOW)).runs
        waiting = Task(TaskKey("ok"), TaskStatus.RUNNING, "approval", started_at=NOW)
        running = replaced(claimed.run, status=RunStatus.RUNNING)
        await bench.store.commit(ANN, [RunChanges(claimed.run.id, claimed.epoch, running, (waiting,))], NOW)
        (listed,) = (await operator.get("/api/v1/approvals")).json()["approvals"]
        assert (listed["run"], listed["task"], listed["message"]) == (run, "ok", "Sure?")
        assert (listed["for"], listed["not_by"], listed["due"]) == ("anyone but the operator", "the operator", None)
        refused = await operator.post(f"/api/v1/runs/{run}/approve")
        assert (refused.status_code, "the operator started run" in refused.text) == (409, True)
        assert await bench.store.pending_commands(claimed.run.id) == ()
        assert (await operator.post(f"/api/v1/runs/{run}/reject", json={"task": "ok"})).status_code == 202
        assert (await admin.post(f"/api/v1/runs/{run}/approve")).status_code == 202
