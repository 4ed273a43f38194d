"""A status callback may carry the status. It is checked like a stored one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ork.model.task import InlineOutput, Status
from ork.objects import documents
from ork.telemetry import TelemetryEvent
from tests.unit.core.flows import spec, workflow

from .bench_top import BenchTop

AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def top() -> BenchTop:
    top = BenchTop(workflow(spec("a")))
    top.create()
    top.step(2)
    top.win_gate("a")
    return top


def document(top: BenchTop, state: str, seq: int, **fields: Any) -> dict[str, Any]:
    at = top.clock.now().isoformat()
    words = {"v": 1, "attempt": str(top.order("a").attempt.key), "seq": seq, "state": state, "at": at, "started_at": at}
    return words | {"finished_at": at} | fields


def tell(top: BenchTop, state: str, seq: int, **fields: Any) -> None:
    attempt = top.order("a").attempt
    top.scheduler.on_status(attempt.key, documents.sign(document(top, state, seq, **fields), attempt.token_hash))


def status_of(top: BenchTop) -> str:
    return top.statuses(top.order("a").attempt.run)["a"]


def test_what_was_told_counts_without_a_file(top: BenchTop) -> None:
    tell(top, "running", 1)
    top.step()
    assert status_of(top) == "running"
    tell(top, "success", 2, output={"inline": "7"})
    top.step()
    assert status_of(top) == "success"


@pytest.mark.parametrize(
    "forged",
    [
        pytest.param(lambda doc, hash: documents.sign(doc, "00" * 32), id="signed with another token"),
        pytest.param(lambda doc, hash: documents.sign(doc | {"attempt": "r/b/0/1"}, hash), id="of another attempt"),
        pytest.param(lambda doc, hash: documents.sign(doc | {"state": "great"}, hash), id="a state there is not"),
        pytest.param(lambda doc, hash: b"{", id="no document"),
    ],
)
def test_what_is_not_the_attempts_own_word_is_refused_and_the_file_read(top: BenchTop, forged: Any) -> None:
    attempt = top.order("a").attempt
    top.say("a", "running", 1)
    top.scheduler.on_status(attempt.key, forged(document(top, "success", 2), attempt.token_hash))
    top.step()
    assert status_of(top) == "running"
    assert top.scheduler.telemetry.counts[TelemetryEvent.DOCUMENT_REFUSED] == 1


def test_a_word_older_than_what_is_known_changes_nothing(top: BenchTop) -> None:
    tell(top, "running", 5)
    top.step()
    tell(top, "failed", 4)
    top.step()
    assert status_of(top) == "running"


def test_news_without_a_word_is_a_reason_to_read_whatever_was_told_before(top: BenchTop) -> None:
    top.say("a", "success", 2)
    tell(top, "running", 1)
    top.scheduler.on_status(top.order("a").attempt.key)
    top.step()
    assert status_of(top) == "success"


def test_a_worker_that_died_after_it_told_of_its_start_is_given_up(top: BenchTop) -> None:
    tell(top, "running", 1)
    top.die("a")
    top.step(3)
    assert status_of(top) == "failed"


def test_an_executor_without_workers_tells_a_status_as_it_is(top: BenchTop) -> None:
    told = Status(1, "success", AT, AT, AT, 0, None, InlineOutput("7"))
    top.scheduler.on_status(top.order("a").attempt.key, told)
    top.step()
    assert status_of(top) == "success"


def test_an_order_carries_the_spec_as_it_was_written(top: BenchTop) -> None:
    order = top.order("a")
    assert order.spec == top.objects.read_spec(str(order.attempt.key))
    assert documents.open_signed(order.spec, order.attempt.token_hash)["task"] == "a"


def test_a_look_between_the_gate_and_the_first_status_does_not_hide_the_start(top: BenchTop) -> None:
    """As with a container: the gate is won, then the engine takes a while to start it."""
    top.scheduler.on_status(top.order("a").attempt.key)
    top.step()
    assert status_of(top) == "dispatched"
    top.say("a", "running", 1)
    top.scheduler.on_status(top.order("a").attempt.key)
    top.step()
    assert status_of(top) == "running"
