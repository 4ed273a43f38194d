"""Documents through the API: a scheduler uses all, an attempt its own and the inputs that its spec names, until it has ended."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from ork.api import callers, document_access
from ork.api.attempt_proofs import GRACE
from ork.api.routes import objects as object_routes
from ork.model.access import Role
from ork.model.ids import AttemptKey, TaskKey
from ork.model.record import replaced
from ork.model.run import RunStatus
from ork.model.task import Attempt, AttemptStatus, Task, TaskStatus
from ork.objects.documents import derive_token, objects_proof, sign, token_hash, wake_proof
from ork.state.records import RunChanges
from tests.unit.api.conftest import ANN, NOW, Bench

SECRET = token_hash("the attempt's token")
OBJECTS = "/api/v1/objects"
INPUT = "runs/00000000000a/before.0.1.output.json"


class Scene:
    """A run with one attempt at work; `mine` is what its keys begin with."""

    def __init__(self, bench: Bench, attempt: Attempt, change: RunChanges) -> None:
        self.bench, self.attempt, self._change = bench, attempt, change
        self.name = "/".join((attempt.key.run, "extract", "0", "1"))
        self.mine = f"runs/{attempt.key.run}/extract.0.1"

    async def client(self, proof: str | None = None, name: str | None = None) -> httpx.AsyncClient:
        named = name or self.name
        shown = objects_proof(named, SECRET) if proof is None else proof
        return await self.bench.client(None, **{"X-Ork-Attempt": named, "X-Ork-Proof": shown})

    async def end(self, finished_at: datetime) -> None:
        ended = replaced(self.attempt, status=AttemptStatus.SUCCESS, finished_at=finished_at)
        await self.bench.store.commit(ANN, [replaced(self._change, attempts=(ended,))], NOW)


async def scene_of(bench: Bench) -> Scene:
    run = await bench.run()
    await bench.store.register(ANN, "identity", "scheduler", NOW)
    (claimed,) = (await bench.store.claim_runs(ANN, 10, NOW)).runs
    key = AttemptKey(run.id, TaskKey("extract"), 1)
    attempt = Attempt(key, AttemptStatus.RUNNING, "process", "name", SECRET, NOW)
    tasks = (Task(key.task, TaskStatus.RUNNING, "process", 1, started_at=NOW),)
    row = replaced(claimed.run, status=RunStatus.RUNNING, started_at=NOW)
    change = RunChanges(run.id, claimed.epoch, row, tasks, (attempt,))
    await bench.store.commit(ANN, [change], NOW)
    scene = Scene(bench, attempt, change)
    upstream = {"before": {"object": INPUT}}
    spec: dict[str, Any] = {"inputs": {}, "upstream": upstream, "env": {}, "output_limit": 1000}
    bench.objects.put(f"{scene.mine}.spec.json", sign(spec, SECRET))
    bench.objects.put(INPUT, b'"input"')
    bench.objects.put("runs/00000000000a/other.0.1.output.json", b'"other"')
    return scene


async def test_an_attempt_reads_its_own_documents_and_the_inputs_its_spec_names(bench: Bench) -> None:
    scene = await scene_of(bench)
    async with await scene.client() as client:
        assert (await client.get(OBJECTS, params={"key": INPUT})).content == b'"input"'
        assert (await client.get(OBJECTS, params={"key": f"{scene.mine}.spec.json"})).status_code == 200
        assert (await client.get(OBJECTS, params={"key": f"{scene.mine}.stop.json"})).status_code == 204
        body = {"keys": [INPUT, f"{scene.mine}.gate.json"], "limit": None}
        many = await client.post(f"{OBJECTS}/many/get", json=body)
        assert many.content == b'{"objects":[7,null]}\n"input"'


async def test_an_attempt_writes_gate_status_output_and_log(bench: Bench) -> None:
    scene = await scene_of(bench)
    async with await scene.client() as client:
        gate = {"key": f"{scene.mine}.gate.json", "if_absent": "true"}
        assert (await client.put(OBJECTS, params=gate, content=b"1")).json() == {"is_written": True}
        assert (await client.put(OBJECTS, params=gate, content=b"2")).json() == {"is_written": False}
        for kind in ("status", "output"):
            answer = await client.put(OBJECTS, params={"key": f"{scene.mine}.{kind}.json"}, content=b"{}")
            assert answer.status_code == 200
        log = {"attempt": scene.name}
        assert (await client.put(f"{OBJECTS}/log", params={**log, "start": 0}, content=b"one\n")).status_code == 204
        assert (await client.post(f"{OBJECTS}/log", params=log, content=b"two\n")).status_code == 204
        assert (await client.get(f"{OBJECTS}/log", params=log)).content == b"one\ntwo\n"
        assert (await client.get(f"{OBJECTS}/log/size", params=log)).json() == {"size": 8}
    assert bench.objects.read_log(scene.name) == b"one\ntwo\n"


@pytest.mark.parametrize(
    "key",
    [
        "runs/00000000000a/other.0.1.output.json",  # there, of the same run
        "runs/00000000000a/missing.0.1.output.json",
        "runs/00000000000b/extract.0.1.spec.json",
        "runs/00000000000a/extract.0.2.spec.json",
        "identity.json",
    ],
)
async def test_what_else_there_is_or_is_not_looks_the_same_to_an_attempt(bench: Bench, key: str) -> None:
    scene = await scene_of(bench)
    bench.objects.put("identity.json", b"{}")
    async with await scene.client() as client:
        answers = [
            await client.get(OBJECTS, params={"key": key}),
            await client.get(f"{OBJECTS}/size", params={"key": key}),
            await client.put(OBJECTS, params={"key": key}, content=b"x"),
            await client.put(OBJECTS, params={"key": key, "if_absent": "true"}, content=b"x"),
            await client.post(f"{OBJECTS}/many/get", json={"keys": [INPUT, key], "limit": None}),
        ]
    assert {answer.status_code for answer in answers} == {403}
    assert len({answer.text for answer in answers}) == 1


async def test_an_attempt_cannot_replace_its_gate_or_write_its_spec_or_stop_request(bench: Bench) -> None:
    scene = await scene_of(bench)
    async with await scene.client() as client:
        for kind in ("gate", "spec", "stop"):
            answer = await client.put(OBJECTS, params={"key": f"{scene.mine}.{kind}.json"}, content=b"x")
            assert answer.status_code == 403
        answer = await client.put(OBJECTS, params={"key": INPUT}, content=b"x")
        assert answer.status_code == 403


async def test_what_is_for_schedulers_is_refused_to_an_attempt(bench: Bench) -> None:
    scene = await scene_of(bench)
    async with await scene.client() as client:
        for method, path, query in (
            ("GET", "/about", {}),
            ("GET", "/keys", {"prefix": "runs"}),
            ("DELETE", "", {"prefix": "runs"}),
            ("POST", "/many/put", {}),
        ):
            assert (await client.request(method, OBJECTS + path, params=query)).status_code == 401
        log = {"attempt": "00000000000a/extract/0/2"}
        assert (await client.get(f"{OBJECTS}/log", params=log)).status_code == 403
        assert (await client.put(f"{OBJECTS}/log", params={**log, "start": 0}, content=b"x")).status_code == 403
        assert (await client.post(f"{OBJECTS}/log", params=log, content=b"x")).status_code == 403
        assert (await client.get("/api/v1/runs")).status_code == 401


@pytest.mark.parametrize("key", ["../x", "runs/../../etc/passwd", "/etc/passwd", "runs//x", "runs/.tmp-x", "./x"])
async def test_a_key_that_leads_elsewhere_is_no_key(bench: Bench, key: str) -> None:
    scene = await scene_of(bench)
    async with await scene.client() as attempt, await bench.client(Role.SCHEDULER) as scheduler:
        for client in (attempt, scheduler):
            assert (await client.get(OBJECTS, params={"key": key})).status_code == 400
            assert (await client.put(OBJECTS, params={"key": key}, content=b"x")).status_code == 400
            body = {"keys": [key], "limit": None}
            assert (await client.post(f"{OBJECTS}/many/get", json=body)).status_code == 400
        assert (await scheduler.delete(OBJECTS, params={"prefix": key})).status_code == 400
        head = b'{"objects":[["%b",1]]}\nx' % key.encode()
        assert (await scheduler.post(f"{OBJECTS}/many/put", content=head)).status_code == 400


async def test_a_wrong_proof_opens_nothing(bench: Bench) -> None:
    scene = await scene_of(bench)
    other = "00000000000a/extract/0/2"
    for proof, name in (
        ("0" * 64, None),
        (wake_proof(scene.name, SECRET), None),
        (SECRET, None),
        (objects_proof(scene.name, SECRET), other),
        (objects_proof(other, SECRET), other),
        (objects_proof("x", SECRET), "../.."),
        ("", None),
    ):
        async with await scene.client(proof, name) as client:
            assert (await client.get(OBJECTS, params={"key": f"{scene.mine}.spec.json"})).status_code == 401


async def test_the_access_ends_with_the_attempt(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker whose last word was not acknowledged has a moment to say it again."""
    monkeypatch.setattr("ork.api.attempt_proofs.ROW_SECONDS", -1.0)
    scene = await scene_of(bench)
    status = {"key": f"{scene.mine}.status.json"}
    async with await scene.client() as client:
        await scene.end(datetime.now(UTC))
        assert (await client.put(OBJECTS, params=status, content=b"{}")).status_code == 200
        await scene.end(datetime.now(UTC) - GRACE - timedelta(seconds=1))
        for answer in (
            await client.put(OBJECTS, params=status, content=b"{}"),
            await client.get(OBJECTS, params=status),
            await client.put(f"{OBJECTS}/log", params={"attempt": scene.name, "start": 0}, content=b"x"),
        ):
            assert answer.status_code == 403
            assert "has ended" in answer.json()["detail"]


async def test_documents_output_and_log_of_an_attempt_are_bounded(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = await scene_of(bench)
    monkeypatch.setattr(document_access, "LOG_LIMIT", 100)
    status, output = ({"key": f"{scene.mine}.{kind}.json"} for kind in ("status", "output"))

    async def unannounced() -> Any:
        for _ in range(3):
            yield b"x" * document_access.STATUS_LIMIT

    async with await scene.client() as client:
        too_large = b"x" * (document_access.STATUS_LIMIT + 1)
        assert (await client.put(OBJECTS, params=status, content=too_large)).status_code == 413
        assert (await client.put(OBJECTS, params=status, content=unannounced())).status_code == 413
        assert (await client.put(OBJECTS, params=output, content=b"x" * 1000)).status_code == 200
        assert (await client.put(OBJECTS, params=output, content=b"x" * 1001)).status_code == 413
        log = {"attempt": scene.name}
        assert (await client.put(f"{OBJECTS}/log", params={**log, "start": 0}, content=b"x" * 100)).status_code == 204
        assert (await client.put(f"{OBJECTS}/log", params={**log, "start": 99}, content=b"xx")).status_code == 413
        assert (await client.put(f"{OBJECTS}/log", params={**log, "start": 2**40}, content=b"x")).status_code == 413


async def test_an_attempt_that_asks_too_often_has_to_wait_and_others_do_not(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callers, "REQUESTS_IN_A_BURST", 5)
    monkeypatch.setattr(callers, "REQUESTS_PER_SECOND", 0.001)
    fresh = Bench(bench.folder, bench.store, bench.objects, bench.api, _app(bench), bench.texts, bench.woken)
    scene = await scene_of(fresh)
    async with await scene.client() as client, await fresh.client(Role.SCHEDULER) as scheduler:
        answers = [await client.get(OBJECTS, params={"key": INPUT}) for _ in range(8)]
        assert 429 in {answer.status_code for answer in answers}
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert (await scheduler.get(OBJECTS, params={"key": INPUT})).status_code == 200


def _app(bench: Bench) -> Any:
    from ork.api.app import create_app

    return create_app(bench.api)


async def test_a_body_without_an_announced_length_is_not_read_beyond_what_the_caller_may_write(bench: Bench) -> None:
    scene = await scene_of(bench)
    sent = 0

    async def unannounced() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(64):
            sent += 1 << 20
            yield bytes(1 << 20)

    async with await scene.client() as client:
        status = {"key": f"{scene.mine}.status.json"}
        assert (await client.put(OBJECTS, params=status, content=unannounced())).status_code == 413
    assert sent <= document_access.STATUS_LIMIT + (1 << 20)


async def test_few_large_bodies_are_read_at_once(bench: Bench) -> None:
    kept = object_routes._RouteState(bench.objects)
    with kept.bodies.held("a"), kept.bodies.held("a"), kept.bodies.held("a"), kept.bodies.held("a"):
        with kept.bodies.held("a") as is_free:
            assert not is_free
        with kept.bodies.held("b") as is_free:
            assert is_free


async def test_no_other_role_opens_documents(bench: Bench) -> None:
    for role in Role:
        async with await bench.client(role) as client:
            answer = await client.get(f"{OBJECTS}/keys")
            assert answer.status_code == (200 if role is Role.SCHEDULER else 403)
    async with await bench.client(Role.SCHEDULER) as client:
        assert (await client.get("/api/v1/runs")).status_code == 403


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"objects":[["a"]]}\n',
        b'{"objects":[["a",2]]}\nx',
        b'{"objects":[["a",1]]}\nxy',
        b'{"objects":[["a",-1]]}\n',
    ],
)
async def test_a_batch_that_does_not_add_up_writes_nothing(bench: Bench, body: bytes) -> None:
    async with await bench.client(Role.SCHEDULER) as client:
        assert (await client.post(f"{OBJECTS}/many/put", content=body)).status_code == 400
    assert bench.objects.list("") == []


async def test_an_attempt_that_parses_an_image_is_in_no_store_and_is_known_by_the_installations_key(
    bench: Bench,
) -> None:
    name = "parse0123456789ab/parse/0/1"
    secret = token_hash(derive_token(await bench.store.signing_key(), name))
    status = {"key": "runs/parse0123456789ab/parse.0.1.status.json"}

    async def answer(proof: str, named: str, **query: str) -> int:
        client = await bench.client(None, **{"X-Ork-Attempt": named, "X-Ork-Proof": proof})
        return (await client.put(OBJECTS, params=query or status, content=b"{}")).status_code

    assert await answer(objects_proof(name, secret), name) < 300
    assert await answer(objects_proof(name, secret), name, key="runs/00000000000a/extract.0.1.status.json") == 403
    assert await answer(objects_proof(name, token_hash("forged")), name) == 401
    run = "00000000000a/parse/0/1"  # an ordinary run may have a task of this name
    known = token_hash(derive_token(await bench.store.signing_key(), run))
    assert await answer(objects_proof(run, known), run) == 401


# ── values that are not JSON ─────────────────────────────────────────────────────────────────────

RUN = "runs/00000000000a"
INLINE, SHARED = f"{RUN}/table.0.2.value-0", f"{RUN}/wide.3.1.value-1"


async def test_an_attempt_reads_values_that_its_input_refers_to_and_no_others(bench: Bench) -> None:
    """Named in its spec, in an output that its spec names, or in one that a scheduler stored for many attempts."""
    scene = await scene_of(bench)
    reference = {"$ork": {"object": INLINE, "codec": "folder", "parts": 2}}
    bench.objects.put_shared([(f"{RUN}/wide.shared-1.json", b'[{"$ork": {"object": "%b"}}]' % SHARED.encode())])
    upstream = {
        "before": {"object": INPUT, "path": []},
        "table": {"value": [reference], "has_values": True},
        "wide": {"object": f"{RUN}/wide.shared-1.json", "path": []},
        "forged": {"value": {"$ork": {"object": f"{RUN}/secret.0.1.value-0"}}},  # data of the user, not of an output
    }
    spec: dict[str, Any] = {"inputs": {}, "upstream": upstream, "env": {}, "output_limit": 1000}
    bench.objects.put(f"{scene.mine}.spec.json", sign(spec, SECRET))
    mine = {"attempt": scene.name, "name": "0"}
    async with await scene.client() as client:
        for key in (f"{RUN}/before.0.1.value-0", INLINE, f"{INLINE}-1", SHARED, f"{scene.mine}.value-0"):
            assert (await client.get(f"{OBJECTS}/value", params={"key": key})).status_code == 200, key
        for key in (
            f"{RUN}/secret.0.1.value-0",
            f"{RUN}/table.0.1.value-0",
            f"{RUN}/wide.3.1.value-0",
            f"{RUN}/wide.0.1.value-1",
        ):
            assert (await client.get(f"{OBJECTS}/value", params={"key": key})).status_code == 403, key
            assert (await client.get(f"{OBJECTS}/value/size", params={"key": key})).status_code == 403, key
        assert (await client.get(f"{OBJECTS}/value", params={"key": INPUT})).status_code == 400, "not a value"
        assert (await client.put(f"{OBJECTS}/value", params=mine, content=b"bytes")).status_code == 204
        assert (await client.get(f"{OBJECTS}/values", params={"attempt": scene.name})).json() == {"keys": ["0"]}
        for other in (scene.name[:-1] + "2", scene.name.replace("extract", "load")):
            refused = await client.put(f"{OBJECTS}/value", params={**mine, "attempt": other}, content=b"bytes")
            deleted = await client.delete(f"{OBJECTS}/values", params={"attempt": other})
            assert (refused.status_code, deleted.status_code) == (403, 403)
        assert (await client.put(f"{OBJECTS}/value", params={**mine, "name": "../x"}, content=b"x")).status_code >= 400
        large = b"x" * ((16 << 20) + 1)
        assert (await client.put(f"{OBJECTS}/value", params=mine, content=large)).status_code == 413


async def test_a_viewer_reads_the_bytes_of_a_value_in_ranges(bench: Bench) -> None:
    scene = await scene_of(bench)
    for name, data in (("0", b"0123456789"), ("0-preview", b'{"kind":"text","text":"01"}')):
        bench.objects.write_value(scene.name, name, 0, data)
    place = f"/api/v1/runs/{scene.attempt.key.run}/tasks/extract/0/attempts/1/values"
    async with await bench.client(Role.VIEWER) as client:
        whole = await client.get(f"{place}/0")
        assert (whole.status_code, whole.content, whole.headers["content-disposition"]) == (
            200,
            b"0123456789",
            "attachment",
        )
        part = await client.get(f"{place}/0", headers={"Range": "bytes=3-5"})
        assert (part.status_code, part.content, part.headers["content-range"]) == (206, b"345", "bytes 3-5/10")
        assert (await client.get(f"{place}/0", headers={"Range": "bytes=50-"})).status_code == 416
        assert (await client.get(f"{place}/0-preview")).json() == {"kind": "text", "text": "01"}
        assert (await client.get(f"{place}/7")).status_code == 404
        assert (await client.get(f"{place}/0-x")).status_code in (400, 404, 422)
