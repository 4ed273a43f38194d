"""The contract for an attempt's documents, sentence by sentence, for every store in object_stores.py."""

from __future__ import annotations

import os
import threading
from hashlib import sha256
from pathlib import Path

import pytest

from ork.errors import DocumentError, ObjectsError
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.keyed import STATUS_LIMIT, KeyedDocuments
from ork.objects.layout import PART_BYTES
from ork.objects.local import LocalObjects
from ork.objects.memory import MemoryObjects
from ork.objects.references import attempt_of_output, output_reference, shared_reference, value_reference
from tests.conformance.object_stores import Open

ONE, TWO, OTHER = "run1/load/0/1", "run1/load/0/2", "run2/load.x/7/1"


@pytest.fixture
def documents(opened: Open) -> AttemptDocuments:
    return opened()


# ── specs ────────────────────────────────────────────────────────────────────────────────────────


def test_every_spec_that_was_put_can_be_read_by_others(opened: Open) -> None:
    specs = [(f"run{number % 3}/task/{number}/1", b'{"spec":%d}' % number) for number in range(100)]
    assert len(opened().put_specs(specs)) == len(specs)
    reader = opened()
    assert [reader.read_spec(attempt) for attempt, _ in specs] == [data for _, data in specs]
    assert reader.read_spec("run0/task/0/2") is None


def test_a_spec_can_be_put_again(documents: AttemptDocuments) -> None:
    documents.put_specs([(ONE, b"first")])
    documents.put_specs([(ONE, b"second"), (TWO, b"x" * 1_000_000)])
    assert (documents.read_spec(ONE), documents.read_spec(TWO)) == (b"second", b"x" * 1_000_000)


def test_positions_never_hide_a_gate_that_was_claimed_before(opened: Open) -> None:
    """A scheduler that launches an attempt again must not let a second worker through."""
    scheduler = opened()
    assert len(scheduler.put_specs([(ONE, b"spec")])) == 1
    assert opened().claim_gate(ONE, b"first")
    positions = opened().put_specs([(ONE, b"spec"), (TWO, b"spec")])
    late = opened()
    late.skip_to(ONE, positions[0])
    assert not late.claim_gate(ONE, b"late")
    late.skip_to(TWO, positions[1])
    assert late.claim_gate(TWO, b"late")


# ── gates ────────────────────────────────────────────────────────────────────────────────────────


def test_exactly_one_claimer_wins(opened: Open) -> None:
    position = opened().put_specs([(ONE, b"spec")])[0]
    barrier, winners = threading.Barrier(8), []

    def claim(number: int) -> None:
        mine = opened()
        mine.skip_to(ONE, position)
        barrier.wait()
        if mine.claim_gate(ONE, b"nonce %d" % number):
            winners.append(number)

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(winners) == 1
    assert list(opened().read_gates([ONE])) == [b"nonce %d" % winners[0]]
    assert not opened().claim_gate(ONE, b"later")


def test_a_claimer_that_lost_the_answer_learns_whether_it_won(opened: Open) -> None:
    first, second = opened(), opened()
    assert first.claim_gate(ONE, b"mine")  # suppose this answer got lost
    assert first.claim_gate(ONE, b"mine")
    assert opened().claim_gate(ONE, b"mine"), "also through another connection"
    assert not second.claim_gate(ONE, b"another's")
    assert not second.claim_gate(ONE, b"another's")
    assert list(first.read_gates([ONE])) == [b"mine"]


def test_a_worker_that_skipped_ahead_learns_it_as_well(opened: Open) -> None:
    position = opened().put_specs([(ONE, b"spec")])[0]
    worker = opened()
    worker.skip_to(ONE, position)
    assert worker.claim_gate(ONE, b"mine")
    assert worker.claim_gate(ONE, b"mine")
    assert not worker.claim_gate(ONE, b"another's")


def test_attempts_do_not_share_a_gate(documents: AttemptDocuments) -> None:
    assert all(documents.claim_gate(attempt, b"a") for attempt in (ONE, TWO, OTHER))
    assert list(documents.read_gates([TWO, "run1/load/0/3", OTHER])) == [b"a", None, b"a"]


# ── statuses ─────────────────────────────────────────────────────────────────────────────────────


def test_the_last_status_counts_however_it_is_written(opened: Open) -> None:
    worker = opened()
    for written in range(4):
        worker.put_status(ONE, b"beat %d" % written, written)
        assert list(opened().read_statuses([ONE])) == [b"beat %d" % written]
    opened().put_status(ONE, b"by the poller")
    assert list(worker.read_statuses([ONE])) == [b"by the poller"]


def test_a_status_is_not_replaced_by_one_that_is_put_if_absent(documents: AttemptDocuments) -> None:
    documents.put_status_if_absent(ONE, b"first")
    documents.put_status_if_absent(ONE, b"second")
    assert list(documents.read_statuses([ONE])) == [b"first"]


def test_first_statuses_are_written_together(opened: Open) -> None:
    ends = [(f"run{number % 2}/t/{number}/1", b"end %d" % number) for number in range(80)]
    opened().put_first_statuses(ends)
    assert list(opened().read_statuses([attempt for attempt, _ in ends])) == [data for _, data in ends]


def test_a_late_status_of_another_attempt_is_not_taken_for_this_one(opened: Open) -> None:
    late, current = opened(), opened()
    current.put_status(TWO, b"two runs", 0)
    late.put_status(ONE, b"one has ended", 0)
    late.put_status(ONE, b"one has ended again", 1)
    assert list(opened().read_statuses([ONE, TWO, "run1/load/0/3"])) == [b"one has ended again", b"two runs", None]


def test_readers_see_whole_statuses_only(opened: Open) -> None:
    texts = [bytes([letter]) * 50_000 for letter in b"ab"]
    writer, reader = opened(), opened()
    writer.put_status(ONE, texts[0], 0)
    done, seen = threading.Event(), set()

    def read() -> None:
        while not done.is_set():
            seen.update(reader.read_statuses([ONE]))

    thread = threading.Thread(target=read)
    thread.start()
    for number in range(1, 60):
        writer.put_status(ONE, texts[number % 2], number)
    done.set()
    thread.join()
    assert seen <= set(texts)


def test_a_document_that_is_too_large_is_an_error_of_its_own(documents: AttemptDocuments) -> None:
    documents.put_status(ONE, b"x" * (STATUS_LIMIT + 1))
    documents.put_status(TWO, b"fine")
    large, fine = documents.read_statuses([ONE, TWO])
    assert isinstance(large, DocumentError)
    assert fine == b"fine"


# ── values ───────────────────────────────────────────────────────────────────────────────────────


def test_outputs_and_shared_values_are_read_by_their_references(opened: Open) -> None:
    writer, reader = opened(), opened()
    reference = writer.put_output(ONE, b"[1]")
    shared = shared_reference("run1", "load", 0)
    writer.put_shared([(shared, b"[2]")])
    assert reference == output_reference(ONE)
    assert attempt_of_output(reference) == ONE
    assert attempt_of_output(shared) is None
    gone = output_reference(TWO)
    assert list(reader.read_values([reference, shared, gone], 100)) == [b"[1]", b"[2]", None]
    assert reader.read_value(shared, 1, 1) == b"2"
    assert reader.read_value(shared) == b"[2]"
    assert (reader.read_value(shared, 9, 5), reader.read_value(gone)) == (b"", b"")
    assert reader.has_value(reference)
    assert not reader.has_value(gone)
    assert isinstance(reader.read_values([reference], 2)[0], DocumentError)


def test_an_output_can_be_put_again(documents: AttemptDocuments) -> None:
    documents.put_output(ONE, b"x" * 500_000)
    documents.put_output(ONE, b"[]")
    assert list(documents.read_values([output_reference(ONE)], 100)) == [b"[]"]


# ── logs: of attempts whose specs were written before ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_log_grows_and_parts_of_it_can_be_read(opened: Open) -> None:
    opened().put_specs([(ONE, b"spec")])
    sink, reader = opened().open_log(ONE), opened()
    assert (reader.log_size(ONE), reader.read_log(ONE)) == (None, b"")
    os.write(sink.fileno(), b"01234")
    sink.flush()
    assert (reader.log_size(ONE), reader.read_log(ONE)) == (5, b"01234")
    os.write(sink.fileno(), b"56789")
    os.write(sink.fileno(), b"abc")
    sink.close()
    assert reader.log_size(ONE) == 13
    assert reader.read_log(ONE) == b"0123456789abc"
    assert reader.read_log(ONE, 3) == b"3456789abc"
    assert reader.read_log(ONE, 3, 4) == b"3456"
    assert reader.read_log(ONE, 4, 1) == b"4"
    assert reader.read_log(ONE, 12, 100) == b"c"
    assert reader.read_log(ONE, 13) == b""
    assert reader.read_log(ONE, 100, 5) == b""
    assert reader.read_log(TWO) == b""


def test_a_log_that_is_opened_again_goes_on_at_its_end(opened: Open) -> None:
    opened().put_specs([(ONE, b"spec")])
    for text in (b"one ", b"two "):
        sink = opened().open_log(ONE)
        os.write(sink.fileno(), text)
        sink.close()
    opened().append_log(ONE, b"three")
    assert opened().read_log(ONE) == b"one two three"


def test_a_log_that_is_opened_and_not_written_is_not_there(opened: Open) -> None:
    opened().open_log(ONE).close()
    assert opened().log_size(ONE) is None


def test_bytes_of_a_log_have_places(opened: Open) -> None:
    """Two who copy the same output at the same time write the same."""
    opened().put_specs([(ONE, b"spec")])
    opened().write_log(ONE, 0, b"01234")
    opened().write_log(ONE, 5, b"56789")
    opened().write_log(ONE, 0, b"0123456")
    opened().write_log(ONE, 7, b"789ab")
    reader = opened()
    assert reader.read_log(ONE) == b"0123456789ab"
    assert reader.read_log(ONE, 6, 3) == b"678"
    assert reader.log_size(ONE) == 12


def test_the_last_status_is_the_one_that_is_read(opened: Open) -> None:
    worker, scheduler = opened(), opened()
    worker.put_specs([(ONE, b"spec"), (TWO, b"spec")])
    worker.put_status(ONE, b"beat", 0)
    worker.put_last_status(ONE, b"end", 1)
    worker.put_last_status(TWO, b"end at once", 0)
    assert list(scheduler.read_statuses([ONE, TWO])) == [b"end", b"end at once"]
    worker.put_last_status(ONE, b"end")
    scheduler.put_last_status(ONE, b"by the poller")
    assert list(opened().read_statuses([ONE])) == [b"by the poller"]


def test_a_look_finds_what_is_new(opened: Open) -> None:
    """What has not changed, or is a heartbeat, need not be read again."""
    worker, scheduler = opened(), opened()
    worker.put_specs([(ONE, b"spec")])
    assert list(scheduler.look_at_statuses([ONE, OTHER])) == [None, None]
    worker.put_status(ONE, b"beat 1", 0)
    assert list(scheduler.look_at_statuses([ONE])) == [b"beat 1"]
    assert scheduler.look_at_statuses([ONE])[0] in (b"beat 1", None)
    worker.put_status(ONE, b"beat 2", 1)
    assert scheduler.look_at_statuses([ONE])[0] in (b"beat 2", "beating")
    worker.put_last_status(ONE, b"end", 2)
    assert list(scheduler.look_at_statuses([ONE, OTHER])) == [b"end", None]
    assert list(opened().look_at_statuses([ONE])) == [b"end"]


# ── stop requests ────────────────────────────────────────────────────────────────────────────────


def test_a_stop_request_is_seen(opened: Open) -> None:
    worker = opened()
    assert worker.read_stop(ONE) is None
    opened().request_stop(ONE, b"stop")
    assert worker.read_stop(ONE) == b"stop"
    assert worker.read_stop(TWO) is None
    opened().request_stop(ONE, b"stop at once")
    assert worker.read_stop(ONE) == b"stop at once"


# ── runs and the store ───────────────────────────────────────────────────────────────────────────


def test_nothing_of_a_deleted_run_is_left(opened: Open) -> None:
    documents = opened()
    for attempt in (ONE, OTHER):
        documents.put_specs([(attempt, b"spec")])
        documents.claim_gate(attempt, b"gate")
        documents.put_status(attempt, b"status", 0)
        documents.put_output(attempt, b"output")
        documents.request_stop(attempt, b"stop")
        documents.append_log(attempt, b"log")
    documents.put_shared([(shared_reference("run1", "load", 0), b"1")])
    documents.delete_runs(["run1"])
    documents.delete_runs(["run1"])
    assert _all_of(opened(), ONE) == [None, None, None, None, None, b""]
    assert not opened().has_value(shared_reference("run1", "load", 0))
    assert _all_of(opened(), OTHER) == [b"spec", b"gate", b"status", b"output", b"stop", b"log"]
    assert documents.claim_gate(ONE, b"anew")


def _all_of(documents: AttemptDocuments, attempt: str) -> list[object]:
    return [
        documents.read_spec(attempt),
        *documents.read_gates([attempt]),
        *documents.read_statuses([attempt]),
        *documents.read_values([output_reference(attempt)], 100),
        documents.read_stop(attempt),
        documents.read_log(attempt),
    ]


def test_one_caller_gives_the_store_its_identity(opened: Open) -> None:
    assert opened().read_identity() is None
    assert opened().put_identity(b"first")
    assert not opened().put_identity(b"second")
    assert opened().read_identity() == b"first"


def test_a_work_file_can_be_made_and_is_the_attempts_own(opened: Open) -> None:
    documents = opened()
    documents.put_specs([(ONE, b"spec")])
    paths = [documents.work_file(ONE, "input.json"), documents.work_file(TWO, "input.json")]
    assert len(set(paths)) == 2
    for path in paths:
        Path(path).write_bytes(b"1")
        os.unlink(path)


@pytest.mark.parametrize("attempt", ["../load/0/1", "./load/0/1", "/load/0/1", "run\0/load/0/1"])
def test_no_name_leads_outside(opened: Open, attempt: str) -> None:
    opened().put_specs([(ONE, b"spec")])
    for act in (
        lambda: opened().put_output(attempt, b"x"),
        lambda: opened().append_log(attempt, b"x"),
        lambda: opened().delete_runs([attempt.partition("/")[0]]),
    ):
        with pytest.raises(ObjectsError):
            act()


def test_a_write_that_fails_in_a_batch_is_told(opened: Open) -> None:
    with pytest.raises(ObjectsError):
        opened().put_shared([(output_reference(ONE), b"1"), ("../outside", b"2")])


# ── stores that take their time ──────────────────────────────────────────────────────────────────


class _Slow(MemoryObjects):
    """Counts how many operations are under way at once. Each waits until there are several."""

    answers_at_once = False

    def __init__(self, together: int) -> None:
        super().__init__()
        self._together = threading.Barrier(together)

    def put(self, key: str, data: bytes) -> None:
        self._together.wait(timeout=10)
        super().put(key, data)

    def get(self, key: str, *, limit: int | None = None) -> bytes | None:
        self._together.wait(timeout=10)
        return super().get(key, limit=limit)


def test_of_a_slow_store_many_operations_run_at_once() -> None:
    slow: KeyedDocuments = _Slow(together=16)
    attempts = [f"run/t/{number}/1" for number in range(16)]
    slow.put_specs([(attempt, b"spec") for attempt in attempts])
    slow.put_first_statuses([(attempt, b"end") for attempt in attempts])
    assert list(slow.read_statuses(attempts)) == [b"end"] * 16
    assert list(slow.read_gates(attempts)) == [None] * 16


# ── values that are not JSON ─────────────────────────────────────────────────────────────────────


def stored_value(documents: AttemptDocuments, attempt: str, name: str, *parts: bytes) -> tuple[int, str]:
    sink = documents.open_value(attempt, name)
    for part in parts:
        sink.write(memoryview(part))
    return sink.finish()


def test_a_value_is_written_in_pieces_and_read_in_ranges(opened: Open) -> None:
    """More than one part, in pieces that end elsewhere than parts do."""
    piece = os.urandom(1 << 20) * 7
    data = piece * 3
    size, digest = stored_value(opened(), ONE, "0", piece, piece, piece)
    assert (size, digest) == (len(data), sha256(data).hexdigest())
    reader, reference = opened(), value_reference(ONE, "0")
    assert reader.has_value(reference)
    assert sha256(reader.read_value(reference)).hexdigest() == digest
    edge = PART_BYTES - 5
    assert reader.read_value(reference, edge, 11) == data[edge : edge + 11]
    assert reader.read_value(reference, len(data) - 3, 100) == data[-3:]
    assert reader.read_value(reference, len(data) + 3, 5) == b""


def test_values_of_an_attempt_are_listed_and_deleted_alone(opened: Open) -> None:
    documents = opened()
    for attempt, name in ((ONE, "0"), (ONE, "0-preview"), (ONE, "0-12"), (TWO, "0"), (OTHER, "3")):
        stored_value(documents, attempt, name, name.encode())
    documents.put_output(ONE, b"[]")
    assert list(opened().list_values(ONE)) == ["0", "0-12", "0-preview"]
    opened().delete_values(ONE)
    opened().delete_values(ONE)
    reader = opened()
    assert (list(reader.list_values(ONE)), reader.has_value(value_reference(ONE, "0"))) == ([], False)
    assert reader.read_value(value_reference(TWO, "0")) == b"0"
    assert reader.read_value(value_reference(OTHER, "3")) == b"3"
    assert reader.read_value(output_reference(ONE)) == b"[]"
    reader.delete_runs(["run1", "run2"])
    assert not reader.has_value(value_reference(TWO, "0"))


def test_a_value_may_be_empty_and_is_not_there_before_it_is_written(documents: AttemptDocuments) -> None:
    assert not documents.has_value(value_reference(ONE, "0"))
    assert documents.read_value(value_reference(ONE, "0")) == b""
    assert stored_value(documents, ONE, "0") == (0, sha256(b"").hexdigest())
    assert documents.has_value(value_reference(ONE, "0"))


def test_parts_can_be_written_for_another_and_again(documents: AttemptDocuments) -> None:
    first, rest = b"a" * PART_BYTES, b"end"
    for start, data in ((PART_BYTES, rest), (0, first), (0, first), (PART_BYTES, rest)):
        documents.write_value(ONE, "1", start, data)
    assert sha256(documents.read_value(value_reference(ONE, "1"))).digest() == sha256(first + rest).digest()


def test_what_was_abandoned_can_be_written_again(documents: AttemptDocuments) -> None:
    sink = documents.open_value(ONE, "0")
    sink.write(b"half")
    sink.abandon()
    assert stored_value(documents, ONE, "0", b"whole") == (5, sha256(b"whole").hexdigest())
    assert documents.read_value(value_reference(ONE, "0")) == b"whole"


@pytest.mark.parametrize("name", ["", "a", "0/1", "../0", "0-x", "0-1-2", "1" * 30])
def test_a_value_has_a_number_for_a_name(documents: AttemptDocuments, name: str) -> None:
    with pytest.raises(ObjectsError):
        documents.open_value(ONE, name).write(b"x")
    with pytest.raises(ObjectsError):
        documents.write_value(ONE, name, 0, b"x")


def test_a_folder_keeps_equal_values_once(tmp_path: Path) -> None:
    objects = LocalObjects(str(tmp_path / "objects"))
    data = os.urandom(1 << 17)
    for attempt in (ONE, TWO, OTHER):
        stored_value(objects, attempt, "0", data)
    paths = [Path(str(objects.value_path(value_reference(attempt, "0")))) for attempt in (ONE, TWO, OTHER)]
    assert len({path.stat().st_ino for path in paths}) == 1
    assert objects.list("") == sorted(value_reference(attempt, "0") for attempt in (ONE, TWO, OTHER))
    stored_value(objects, TWO, "0", b"another")  # written again: the others stay as they are
    assert [path.read_bytes() == data for path in paths] == [True, False, True]
    objects.delete_runs(["run1"])
    assert paths[2].stat().st_nlink == 2, "the name by its content is kept while somebody uses it"
    objects.delete_runs(["run2"])
    assert not [file for file in (tmp_path / "objects").rglob("*") if file.is_file()]
