"""What nearly all attempts say at last is read without taking the document apart, and never read otherwise than closely."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from ork.errors import DocumentError
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.task import Attempt, AttemptStatus, Status
from ork.model.workflow import CompiledWorkflow, Isolation, PythonCall, TaskSpec
from ork.objects.documents import DOCUMENT_LIMIT, sign, token_hash
from ork.scheduler import statuses
from tests.unit.scheduler.bench_top import BenchTop

KEY = AttemptKey(RunId("r"), TaskKey("a.b", 3), 2)
HASH = token_hash("secret")
ATTEMPT = Attempt(KEY, AttemptStatus.DISPATCHED, "process", "hand:x", HASH, datetime(2026, 1, 1, tzinfo=UTC))
AT = "2026-11-16T02:10:21.491464Z"
SUCCESS: dict[str, Any] = {
    "v": 1,
    "attempt": str(KEY),
    "seq": 2,
    "state": "success",
    "at": AT,
    "started_at": "2026-11-16T02:10:21.000000Z",
    "finished_at": AT,
    "exit_code": 0,
    "failure": None,
    "output": {"inline": "1"},
    "metrics": None,
}
OUTPUTS = [
    "",
    "null",
    '{"a":"b\\n"}',
    '"é"',
    '"😀"',
    "a\tb",
    "\x7f",
    "\\",
    "/",
    "\ud800",
    "\0",
    "x" * 70_000 + "\\" * 9,
]
USUAL = [SUCCESS, {**SUCCESS, "output": None}, {**SUCCESS, "exit_code": 3}, {**SUCCESS, "seq": 123456789}]
OTHERS = [
    *({**SUCCESS, "output": {"inline": text}} for text in OUTPUTS),
    *({**SUCCESS, "seq": seq} for seq in (0, -1, 1.0, True, "1", None, 10**9, 10**500)),
    *({**SUCCESS, "exit_code": code} for code in (None, -9, 1000, 1.5, "0")),
    *({**SUCCESS, "at": at} for at in ("2026-99-16T02:10:21.491464Z", "2026-11-16T02:10:21+01:00", "", None)),
    *({**SUCCESS, "state": state} for state in ("running", "failed", "stopped", "deferred", "else")),
    {**SUCCESS, "output": {"object": "elsewhere", "size": 3}},
    {**SUCCESS, "output": {"inline": "1", "more": 2}},
    {**SUCCESS, "output": {"inline": "x" * DOCUMENT_LIMIT}},
    {**SUCCESS, "metrics": {"rows": 3}},
    {**SUCCESS, "attempt": "r/a.b/3/1"},
    {**SUCCESS, "more": 1},
    {name: value for name, value in SUCCESS.items() if name != "metrics"},
]


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statuses, "_usual_success", None)


def said(data: bytes) -> Status | str:
    try:
        return statuses.checked_status(data, ATTEMPT)
    except DocumentError as error:
        return error.message


def texts(document: dict[str, Any]) -> list[bytes]:
    """As its worker writes it, and in ways in which nobody should."""
    data = sign(document, HASH)
    return [
        data,
        sign(document, token_hash("another")),
        data[:-3] + b'0"}',
        data[:-2],
        data + b"\n",
        data.replace(b'"seq":', b'"seq":7,"seq":'),
        data.replace(b'"seq":', b'"seq":0'),
        data.replace(b":", b": "),
        json.dumps(document).encode(),
    ]


@pytest.mark.parametrize("document", [*USUAL, *OTHERS])
def test_it_says_what_it_says_when_it_is_decode(document: dict[str, Any]) -> None:
    closely = [said(data) for data in texts(document)]
    statuses.expect_many()
    assert [said(data) for data in texts(document)] == closely


@pytest.mark.parametrize("document", USUAL)
def test_what_workers_write_is_read_in_this_way(document: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    statuses.expect_many()
    monkeypatch.setattr(statuses, "_decode", None)
    assert isinstance(said(sign(document, HASH)), Status)


@pytest.mark.parametrize("isolation", [Isolation.FORK, Isolation.SHARED])
def test_many_are_expected_where_tasks_share_a_process(isolation: Isolation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statuses, "_usual_success", None)
    top = BenchTop(CompiledWorkflow("flow", (TaskSpec("a", "process", PythonCall("a.py", None), isolation=isolation),)))
    top.create()
    top.step(3)
    assert len(top.executor.started) == 1
    assert (statuses._usual_success is not None) == (isolation is Isolation.SHARED)
