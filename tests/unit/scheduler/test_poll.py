"""Asking jobs: what an answer means, and what an attempt may wait for at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from ork.errors import ExecutorError
from ork.executors.executor import LaunchOrder
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.outbound import OutboundRule, parse_allowed
from ork.model.task import Attempt, AttemptStatus
from ork.objects import documents, layout
from ork.objects.attempt_documents import LogSink
from ork.scheduler import poll
from ork.scheduler.poll import Poller
from ork.scheduler.poll_jobs import Done, JobFailed, NotYet, job_result
from ork.sdk.web import HttpResponse
from ork.state.memory import MemoryStore
from ork.testing.objects import MemoryObjects
from tests.loopback import loopback

HASH = "ab" * 32
SPEC = {"kind": "python", "workflow": "flow", "root": "/project", "env": {}, "inline_limit": 10, "output_limit": 1000}


def answer(value: Any, status: int = 200) -> HttpResponse:
    return HttpResponse(status, "application/json", json.dumps(value).encode())


JOB = {"http": "http://x/", "done": {"path": "s", "equals": 1}, "failed": {"path": "s", "equals": 2}, "output": "r"}


@pytest.mark.parametrize(
    ("given", "meaning"),
    [
        (answer({"s": 0}), NotYet()),
        (answer({"s": 1, "r": [1]}), Done("[1]")),
        (answer({"s": 1, "r": None}), Done(None)),
        (answer({}, 503), NotYet("answered 503")),
        (answer({}, 429), NotYet("answered 429")),
    ],
)
def test_an_answer_says_done_or_not_yet(given: HttpResponse, meaning: object) -> None:
    assert job_result(JOB, given) == meaning


def test_a_failed_job_and_a_refused_question_are_failures() -> None:
    for given in (answer({"s": 2, "why": "broken"}), answer({"error": "gone"}, 404)):
        judged = job_result(JOB, given)
        assert isinstance(judged, JobFailed)
        assert given.shown() in judged.failure.message


def test_without_conditions_the_status_decides() -> None:
    job = {"http": "http://x/"}
    assert job_result(job, answer({"a": 1}, 202)) == NotYet()
    assert job_result(job, answer({"a": 1})) == Done('{"a":1}')
    assert job_result(job, HttpResponse(200, "text/plain", b"hi")) == Done('"hi"')
    assert job_result(job, HttpResponse(204, "", b"")) == Done(None)


def test_a_result_that_is_not_there_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="has no `r`"):
        job_result(JOB, answer({"s": 1}))
    with pytest.raises(ValueError, match="not JSON"):
        job_result(JOB, HttpResponse(200, "text/plain", b"<html>"))


LOOPBACK = OutboundRule((parse_allowed("127.0.0.1"),))


class Bench:
    """A poller on memory, whose short processes are played by the test."""

    def __init__(self, jobs: list[dict[str, Any]], **spec: Any) -> None:
        def secrets(name: str, workflow: str) -> str:
            return f"{name} of {workflow}"

        key = AttemptKey(RunId("run1"), TaskKey("a"), 1)
        now = datetime.now(UTC)
        self.attempt = Attempt(
            key, AttemptStatus.RUNNING, "python", "name", HASH, now, started_at=now, seq=2, waits_for=json.dumps(jobs)
        )
        self.folder = layout.attempt_stem(key)
        self.objects = MemoryObjects()
        self.objects.put(layout.spec_key(self.folder), documents.sign({**SPEC, **spec}, HASH))
        at = now.isoformat()
        status = {"v": 1, "attempt": str(key), "seq": 2, "state": "deferred", "at": at, "started_at": at, "jobs": jobs}
        self.objects.put(layout.status_key(self.folder), documents.sign(status, HASH))
        self.requests: list[dict[str, Any]] = []
        self.replies: list[Any] = []
        self.ended = asyncio.Event()
        self.poller = Poller(
            MemoryStore(),
            self.objects,
            secrets=secrets,
            rule=LOOPBACK,
            ask_process=self._ask,
            on_change=lambda: None,
        )

    async def _ask(self, order: LaunchOrder, request: bytes, secrets: Mapping[str, str], log: LogSink) -> bytes:
        self.requests.append(json.loads(request))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return json.dumps(reply).encode()

    async def watch(self) -> None:
        await self.poller.watch([self.attempt], lambda _key: self.ended.set())

    def status(self) -> dict[str, Any]:
        data = self.objects.get(layout.status_key(self.folder))
        assert data is not None
        return documents.open_signed(data, HASH)


CALL = {"call": "m:f", "args": {"x": 1}, "every": 0.05, "cancel": "m:g"}


async def _from_an_image() -> None:
    bench = Bench([CALL], container={"image": "x"})
    await bench.watch()
    await asyncio.wait_for(bench.ended.wait(), 30)
    status = bench.status()
    assert (status["state"], bench.requests) == ("failed", [])
    assert "cannot have a function called here" in status["failure"]["message"]


def test_who_is_in_a_container_gets_no_function_called_outside_of_it() -> None:
    asyncio.run(_from_an_image())


async def _until_done() -> None:
    bench = Bench([CALL])
    bench.replies = [{"result": None}, ExecutorError("no process"), {"result": '"a long result"'}]
    await bench.watch()
    await bench.watch()
    await asyncio.wait_for(bench.ended.wait(), 30)
    assert [(request["call"], request["args"]) for request in bench.requests] == [("m:f", {"x": 1})] * 3
    status = bench.status()
    assert (status["seq"], status["state"], "jobs" in status) == (3, "success", False)
    assert status["output"] == {"object": layout.output_key(bench.folder), "size": 15}
    assert bench.objects.get(layout.output_key(bench.folder)) == b'"a long result"'
    assert not bench.poller.is_waiting(bench.attempt.key)


def test_a_function_is_asked_until_it_answers_and_no_answer_is_not_an_end() -> None:
    asyncio.run(_until_done())


async def _wrong_type() -> dict[str, Any]:
    bench = Bench([CALL, CALL], output_type={"list": "int"}, types={})
    bench.replies = [{"result": "1"}, {"result": '"two"'}]
    await bench.watch()
    await asyncio.wait_for(bench.ended.wait(), 30)
    return bench.status()


def test_results_are_a_list_in_order_and_are_checked_against_what_the_task_declares() -> None:
    status = asyncio.run(_wrong_type())
    assert (status["state"], status["failure"]["kind"]) == ("failed", "output")
    assert "output[1]: expected int" in status["failure"]["message"]


async def _settled(*replies: Any) -> bool:
    bench = Bench([CALL] * len(replies))
    bench.replies = list(replies)
    await bench.watch()
    ended = await asyncio.wait_for(bench.poller.settle(), 30)
    bench.poller.close()
    return ended


@pytest.mark.parametrize(
    ("replies", "ended"),
    [
        (["1"], True),
        (["1", "2"], True),
        ([None], False),
        (["1", None], False),
        ([None, "1"], False),
    ],
)
def test_who_looks_in_leaves_with_every_answer_that_was_there(
    replies: list[str | None], ended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poll, "SETTLE_SECONDS", 0)  # looks at the worst moment, too
    assert asyncio.run(_settled(*({"result": reply} for reply in replies))) is ended


async def _stop() -> None:
    bench = Bench([CALL])
    bench.replies = [{"result": None}, {"result": None}]
    await bench.watch()
    await bench.poller.settle()
    await bench.poller.stop([bench.attempt], at_once=False)
    await bench.poller.stop([bench.attempt], at_once=False)
    await asyncio.wait_for(bench.ended.wait(), 30)
    assert [request["call"] for request in bench.requests] == ["m:f", "m:g"]
    assert bench.status()["state"] == "stopped"


def test_stopping_tells_the_job_once_and_says_so() -> None:
    asyncio.run(_stop())


async def _write_once() -> None:
    bench = Bench([CALL])
    done = {**bench.status(), "state": "success", "seq": 3}
    bench.replies = [{"failure": {"kind": "exception", "message": "late", "detail": None}}]
    bench.objects.put(layout.status_key(bench.folder), documents.sign(done, HASH))
    await bench.watch()
    await asyncio.wait_for(bench.ended.wait(), 30)
    assert bench.status()["state"] == "success"


def test_a_last_word_that_is_written_stands() -> None:
    asyncio.run(_write_once())


class Stale(MemoryObjects):
    """Shows the status as it was before the worker handed over, or not at all, for the first few looks."""

    def __init__(self, bench: Bench, before: dict[str, Any] | None, looks: int) -> None:
        super().__init__()
        self._before = None if before is None else documents.sign(before, HASH)
        self._looks = looks
        for key in bench.objects.list(""):
            self.put(key, bench.objects.get(key) or b"")

    def get(self, key: str, *, limit: int | None = None) -> bytes | None:
        if key.endswith("status.json") and self._looks > 0:
            self._looks -= 1
            return self._before
        return super().get(key, limit=limit)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_stale_look_at_the_status_is_no_last_word(is_there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poll, "WRITE_AGAIN_SECONDS", 0.01)

    async def story() -> None:
        bench = Bench([CALL])
        running = {**bench.status(), "state": "running", "seq": 1}
        bench.objects = bench.poller._objects = Stale(bench, running if is_there else None, looks=3)
        bench.replies = [{"result": "7"}]
        await bench.watch()
        await asyncio.wait_for(bench.ended.wait(), 30)
        assert (bench.status()["state"], bench.status()["seq"]) == ("success", 3)

    asyncio.run(story())


def test_an_attempt_whose_documents_are_gone_is_not_waited_with_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poll, "WRITE_AGAIN_SECONDS", 0.001)

    async def story() -> None:
        bench = Bench([CALL])
        bench.poller._objects = Stale(bench, None, looks=10**9)
        bench.replies = [{"result": "7"}]
        await bench.watch()
        await asyncio.wait_for(bench.ended.wait(), 30)

    asyncio.run(story())


async def _status_of(status: int, body: bytes) -> dict[str, Any]:
    with loopback() as site:
        site.answers["/job"] = (status, body)
        bench = Bench([{"http": site.url + "/job", "every": 0.05, "done": {"path": "s", "equals": 1}, "output": "r"}])
        await bench.watch()
        await asyncio.wait_for(bench.ended.wait(), 30)
        return bench.status()


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (200, b'{"s": 1, "r": "a\\u0000b"}', "NUL"),
        (200, b'{"s": 1, "r": "' + b"x" * 2000 + b'"}', "larger than 1000 bytes"),
        (200, b'{"s": 1}', "has no `r`"),
        (200, b"<html>", "not JSON"),
        (400, b"no \0 way", "no \\0 way"),
    ],
)
def test_an_answer_nobody_could_use_fails_the_attempt_with_its_reason(status: int, body: bytes, message: str) -> None:
    ended = asyncio.run(_status_of(status, body))
    assert ended["state"] == "failed"
    assert message in ended["failure"]["message"]


@pytest.mark.parametrize("job", [{"run": "somebody-elses"}, {"http": "file:///etc/passwd"}, {"call": "rm -rf /"}])
def test_a_forged_job_is_never_asked(job: dict[str, Any]) -> None:
    async def watch() -> None:
        bench = Bench([job])
        with pytest.raises(ExecutorError, match="not a job"):
            await bench.watch()
        assert not bench.poller.is_waiting(bench.attempt.key)

    asyncio.run(watch())
