"""Documents in a bucket that loses answers, refuses, and lists late."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import count

import pytest

from ork.errors import DocumentError, ObjectsError
from ork.objects.buckets import requests
from ork.objects.buckets.documents import BucketDocuments
from ork.objects.buckets.opening import open_bucket
from ork.objects.identity import ObjectsIdentity, make_identity
from ork.objects.spooled_log import UPLOAD_BYTES, SpooledLog
from tests.cloud.fake_gcs import DELETE, LIST, READ, WRITE, FakeGcs

ONE, TWO, OTHER = "run1/load/0/1", "run1/load/1/1", "run2/load/0/1"


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "FIRST_PAUSE_SECONDS", 0.01)


def first(number: int, kind: str) -> Callable[[str, str], bool]:
    """True for the first operations of a kind."""
    seen = count()
    return lambda is_kind, _key: is_kind == kind and next(seen) < number


# ── the gate ─────────────────────────────────────────────────────────────────────────────────────


def test_a_gate_whose_answer_was_lost_is_won(gcs: FakeGcs, documents: BucketDocuments) -> None:
    gcs.loses_answer = first(1, WRITE)
    assert documents.claim_gate(ONE, b"mine")
    assert not documents.claim_gate(ONE, b"other")
    assert list(documents.read_gates([ONE])) == [b"mine"]


def test_a_gate_of_which_every_answer_is_lost_is_won_when_the_store_answers(
    gcs: FakeGcs, documents: BucketDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "RETRY_SECONDS", 0.05)
    gcs.loses_answer = lambda kind, _key: kind == WRITE
    with pytest.raises(ObjectsError, match="cannot reach"):
        documents.claim_gate(ONE, b"mine")
    gcs.loses_answer = lambda _kind, _key: False
    assert documents.claim_gate(ONE, b"mine")


def test_an_identity_whose_answer_was_lost_is_ours(gcs: FakeGcs, documents: BucketDocuments) -> None:
    gcs.loses_answer = first(1, WRITE)
    mine = ObjectsIdentity("a" * 32, "bucket", "host")
    assert make_identity(documents, mine) == mine


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_passes_is_tried_again(gcs: FakeGcs, documents: BucketDocuments, status: int) -> None:
    refused = first(3, WRITE)
    gcs.refuses = lambda kind, key: status if refused(kind, key) else None
    documents.put("k", b"1")
    assert documents.get("k") == b"1"
    assert gcs.count(WRITE) == 4


def test_a_store_that_stays_away_is_given_up_after_a_while(
    gcs: FakeGcs, documents: BucketDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "RETRY_SECONDS", 0.1)
    gcs.refuses = lambda _kind, _key: 503
    with pytest.raises(ObjectsError, match="503"):
        documents.get("k")
    gcs.is_down = True
    with pytest.raises(ObjectsError, match="cannot reach"):
        documents.get("k")


def test_a_refusal_names_the_permission_and_is_not_repeated(gcs: FakeGcs, documents: BucketDocuments) -> None:
    gcs.refuses = lambda _kind, _key: 403
    with pytest.raises(ObjectsError, match="permission denied") as raised:
        documents.put("k", b"1")
    assert "docs/buckets.md" in str(raised.value.hint)
    assert gcs.count(WRITE) == 1


def test_a_missing_bucket_is_named(gcs: FakeGcs) -> None:
    missing = open_bucket(gcs.url().replace("gs://bucket", "gs://another"), forks=True)
    for act in (lambda: missing.put("k", b"1"), lambda: missing.get("k"), lambda: missing.list("")):
        with pytest.raises(ObjectsError, match="another: the bucket does not exist"):
            act()


def test_a_store_without_conditional_writes_is_refused_and_left_as_it_was(
    gcs: FakeGcs, documents: BucketDocuments
) -> None:
    gcs.honours_conditions = False
    with pytest.raises(ObjectsError, match="conditional writes"):
        make_identity(documents, ObjectsIdentity("a" * 32, "bucket", "host"))
    assert gcs.keys() == []


def test_a_connection_that_the_service_closed_meanwhile_is_opened_again(
    gcs: FakeGcs, documents: BucketDocuments
) -> None:
    documents.put("k", b"1")
    gcs.loses_answer = first(1, READ)
    assert documents.get("k") == b"1"


def test_an_object_that_is_too_large_is_not_read(gcs: FakeGcs, documents: BucketDocuments) -> None:
    documents.put("k", b"x" * 1000)
    with pytest.raises(DocumentError, match="1000 bytes"):
        documents.get("k", limit=999)


# ── one write a second ───────────────────────────────────────────────────────────────────────────


def test_the_last_status_does_not_wait_for_the_second_of_a_heartbeat(gcs: FakeGcs, documents: BucketDocuments) -> None:
    gcs.limits_writes = True
    documents.put_status(ONE, b"running", 0)
    documents.put_last_status(ONE, b"success", 1)
    assert list(documents.read_statuses([ONE])) == [b"success"]
    assert [each.status for each in gcs.operations if each.kind == WRITE] == [200, 200]


def test_two_heartbeats_within_a_second_are_both_written(gcs: FakeGcs, documents: BucketDocuments) -> None:
    gcs.limits_writes = True
    begun = time.monotonic()
    documents.put_status(ONE, b"1", 0)
    documents.put_status(ONE, b"2", 1)
    assert time.monotonic() - begun >= 1.0
    assert list(documents.read_statuses([ONE])) == [b"2"]


# ── looking at statuses ──────────────────────────────────────────────────────────────────────────


def test_a_look_reads_the_first_status_and_the_last_and_lists_otherwise(
    gcs: FakeGcs, documents: BucketDocuments
) -> None:
    worker = open_bucket(gcs.url(), forks=True)
    assert list(documents.look_at_statuses([ONE, TWO])) == [None, None]
    worker.put_status(ONE, b"running 1", 0)
    assert list(documents.look_at_statuses([ONE, TWO])) == [b"running 1", None]
    assert list(documents.look_at_statuses([ONE])) == [None]
    worker.put_status(ONE, b"running 2", 1)
    assert list(documents.look_at_statuses([ONE])) == ["beating"]
    worker.put_last_status(ONE, b"success", 2)
    assert list(documents.look_at_statuses([ONE])) == [b"success"]
    assert (gcs.count(READ), gcs.count(LIST)) == (2, 5)


def test_a_look_lists_each_run_once(gcs: FakeGcs, documents: BucketDocuments) -> None:
    attempts = [*(f"run1/load/{number}/1" for number in range(50)), OTHER]
    assert list(documents.look_at_statuses(attempts)) == [None] * 51
    assert (gcs.count(READ), gcs.count(LIST)) == (0, 2)


def test_a_large_run_with_few_active_attempts_is_not_listed_again(
    gcs: FakeGcs, documents: BucketDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of 10,000 tasks has 50 pages of objects. Listing them for each look would cost more than reading the statuses."""
    monkeypatch.setattr("ork.objects.buckets.documents.OBJECTS_IN_A_PAGE", 10)
    gcs.page = 10
    worker = open_bucket(gcs.url(), forks=True)
    worker.put_specs([(f"run1/load/{number}/1", b"spec") for number in range(100)])
    worker.put_status(ONE, b"running 1", 0)
    assert list(documents.look_at_statuses([ONE, TWO])) == [b"running 1", None]
    assert gcs.count(LIST) == 11  # pages, once
    before = gcs.count(READ)
    for _ in range(6):
        assert list(documents.look_at_statuses([ONE, TWO])) == [None, None]
    assert gcs.count(LIST) == 11
    assert gcs.count(READ, "load.0.1") - before == 6  # its end, with each look
    worker.put_status(TWO, b"running 1", 0)
    assert list(documents.look_at_statuses([ONE, TWO])) == [None, b"running 1"]
    worker.put_last_status(ONE, b"success", 1)
    assert list(documents.look_at_statuses([ONE, TWO])) == [b"success", None]
    many = [f"run1/load/{number}/1" for number in range(2, 150)]
    assert list(documents.look_at_statuses(many)) == [None] * len(many)
    assert gcs.count(LIST) == 22


def test_a_late_listing_delays_a_look_and_nothing_that_is_decided(gcs: FakeGcs, documents: BucketDocuments) -> None:
    gcs.listing_delay = 60.0
    documents.put_last_status(ONE, b"success", 0)
    assert list(documents.look_at_statuses([ONE])) == [None]
    assert list(documents.read_statuses([ONE])) == [b"success"]


def test_a_listing_that_fails_is_an_error_of_its_run_alone(gcs: FakeGcs, documents: BucketDocuments) -> None:
    documents.put_last_status(ONE, b"success", 0)
    gcs.refuses = lambda kind, key: 403 if kind == LIST and "run2" in key else None
    found = documents.look_at_statuses([ONE, OTHER])
    assert found[0] == b"success"
    assert isinstance(found[1], ObjectsError)


def test_long_listings_come_in_pages(gcs: FakeGcs, documents: BucketDocuments) -> None:
    gcs.page = 7
    documents.put_specs([(f"run1/load/{number}/1", b"spec") for number in range(40)])
    assert len(documents.list("runs/run1")) == 40
    documents.delete_runs(["run1"])
    assert gcs.keys() == []
    assert gcs.count(DELETE) == 40


# ── logs ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_log_is_uploaded_at_once_then_every_ten_seconds_or_where_there_is_much(
    gcs: FakeGcs, documents: BucketDocuments
) -> None:
    log = SpooledLog(documents, ONE)
    now = time.monotonic()
    assert log.due(now) is None
    os.write(log.fileno(), b"first ")
    assert (log.due(now) or 0.0) <= now
    log.flush()
    os.write(log.fileno(), b"second ")
    after = time.monotonic()
    assert after + 9 < (log.due(after) or 0.0) <= after + 10
    os.write(log.fileno(), b"x" * UPLOAD_BYTES)
    assert (log.due(after) or 0.0) > after  # at most one upload a second
    assert log.due(after + 2) == after + 2
    log.close()
    assert len(documents.read_log(ONE)) == len(b"first second ") + UPLOAD_BYTES
    assert gcs.count(WRITE, ".log/") == 2


def test_a_part_of_a_log_is_read_from_the_chunks_that_cover_it(gcs: FakeGcs, documents: BucketDocuments) -> None:
    for number in range(10):
        documents.write_log(ONE, number * 10, b"%d" % number * 10)
    assert documents.read_log(ONE, 35, 10) == b"3333344444"
    assert (gcs.count(READ), gcs.count(LIST)) == (2, 1)


def test_a_log_that_cannot_be_uploaded_loses_nothing(
    gcs: FakeGcs, documents: BucketDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "RETRY_SECONDS", 0.05)
    log = SpooledLog(documents, ONE)
    os.write(log.fileno(), b"one ")
    gcs.is_down = True
    with pytest.raises(ObjectsError):
        log.flush()
    os.write(log.fileno(), b"two")
    gcs.is_down = False
    log.close()
    assert documents.read_log(ONE) == b"one two"
