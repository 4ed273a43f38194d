"""A run's journal: what it says of a document, whatever else is in the file and whoever else writes to it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

import pytest

from ork.errors import ObjectsError
from ork.objects.journal import LOOK_AGAIN_SECONDS, Journal
from ork.objects.journaled import JOURNAL, LARGEST_IN_JOURNAL, JournaledObjects
from ork.objects.opening import open_objects
from ork.system.linux import disk_of

TASK = "a/task/0/1"
SPEC, GATE, STATUS = (f"runs/a/task.0.1.{kind}.json" for kind in ("spec", "gate", "status"))

WINNER = """
import os, sys
from ork.objects.journaled import JournaledObjects
objects = JournaledObjects(sys.argv[1])
objects.skip_to("a/task/0/1", int(sys.argv[2]))
sys.stdin.read(1)
won = [n for n in range(200) if objects.claim_gate(f"a/t/{n}/1", b"%d" % os.getpid())]
print(*won)
"""


def place(scheduler: JournaledObjects, attempt: str = "task.0.1") -> int:
    """Where a worker of this attempt is told to begin."""
    (position,) = scheduler.put_specs([("a/" + attempt.replace(".", "/"), b"7")])
    return position


@pytest.fixture
def objects(tmp_path: Path) -> JournaledObjects:
    return JournaledObjects(str(tmp_path))


def file_of(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "a" / JOURNAL


@pytest.mark.parametrize("is_told_where_to_begin", [False, True])
def test_of_many_processes_exactly_one_wins_each_gate(tmp_path: Path, is_told_where_to_begin: bool) -> None:
    scheduler = JournaledObjects(str(tmp_path))
    scheduler.put("runs/a/other.0.1.spec.json", b"7")
    position = place(scheduler) if is_told_where_to_begin else 0
    command = [sys.executable, "-c", WINNER, str(tmp_path), str(position)]
    workers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(4)]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(b"!")
        worker.stdin.flush()
    won = [int(number) for worker in workers for number in worker.communicate()[0].split()]
    assert sorted(won) == list(range(200))


def test_what_another_process_puts_is_seen(objects: JournaledObjects, tmp_path: Path) -> None:
    assert objects.get(STATUS) is None
    other = JournaledObjects(str(tmp_path))
    other.put(STATUS, b"1")
    assert objects.get(STATUS) == b"1"
    objects.put(STATUS, b"2")
    assert other.get(STATUS) == b"2"
    other.put(STATUS, b"3")
    assert objects.get(STATUS) == b"3"


def test_a_journal_does_not_grow_with_every_heartbeat(objects: JournaledObjects, tmp_path: Path) -> None:
    for number in range(3):
        objects.put(STATUS, b"%d" % number)
    size = file_of(tmp_path).stat().st_size
    for number in range(100):
        objects.put(STATUS, b"%d" % number)
    assert file_of(tmp_path).stat().st_size == size
    assert JournaledObjects(str(tmp_path)).get(STATUS) == b"99"


def test_no_file_is_made_for_an_attempt_that_says_little(objects: JournaledObjects, tmp_path: Path) -> None:
    objects.put(SPEC, b"1")
    objects.put_if_absent(GATE, b"2")
    objects.put(STATUS, b"3")
    assert os.listdir(tmp_path / "runs" / "a") == [JOURNAL]


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_line_that_was_cut_off_counts_for_nothing_and_harms_no_other(tmp_path: Path, cut: int) -> None:
    JournaledObjects(str(tmp_path)).put_if_absent(GATE, b'{"pid":17}')
    with file_of(tmp_path).open("r+b") as file:
        file.truncate(file_of(tmp_path).stat().st_size - cut)
    reader, writer = JournaledObjects(str(tmp_path)), JournaledObjects(str(tmp_path))
    assert reader.get(GATE) is None
    assert writer.put_if_absent(GATE, b'{"pid":18}')
    assert reader.get(GATE) == b'{"pid":18}'
    assert not reader.put_if_absent(GATE, b'{"pid":19}')


@pytest.mark.parametrize(
    "noise", [b"noise", b"\x1e=status.json task.0.1 9 x\n", b"\x1e\n\x1e", b"\n\n  \n", b"\x00\xff" * 3_000_000]
)
def test_what_is_no_record_is_passed_over(tmp_path: Path, noise: bytes) -> None:
    writer, reader = JournaledObjects(str(tmp_path)), JournaledObjects(str(tmp_path))
    writer.put(SPEC, b"1")
    assert reader.get(SPEC) == b"1"
    with file_of(tmp_path).open("ab") as file:
        file.write(noise)
    assert reader.get(STATUS) is None
    writer.put(STATUS, b"2")
    assert reader.get(STATUS) == JournaledObjects(str(tmp_path)).get(STATUS) == b"2"


def test_a_gate_that_was_a_file_before_the_journal_is_not_won_again(tmp_path: Path) -> None:
    open_objects(f"file:{tmp_path}").put(GATE, b"long ago")
    objects = JournaledObjects(str(tmp_path))
    assert not objects.put_if_absent(GATE, b"now")
    assert objects.get(GATE) == b"long ago"


def test_a_worker_that_begins_in_the_middle_still_finds_what_was_before(tmp_path: Path) -> None:
    scheduler, worker = JournaledObjects(str(tmp_path)), JournaledObjects(str(tmp_path))
    for number in range(50):
        scheduler.put(f"runs/a/task.{number}.1.spec.json", b"%d" % number)
    assert scheduler.get("runs/a/task.7.1.gate.json") is None
    worker.skip_to("a/task/0/1", place(scheduler, "task.7.1"))
    assert worker.claim_gate("a/task/7/1", b"mine")
    assert worker.get("runs/a/task.7.1.spec.json") == b"7"
    assert worker.get("runs/a/task.70.1.spec.json") is None
    assert not scheduler.put_if_absent("runs/a/task.7.1.gate.json", b"closed")


def test_a_worker_that_begins_in_the_middle_loses_to_a_gate_closed_since(tmp_path: Path) -> None:
    scheduler, worker = JournaledObjects(str(tmp_path)), JournaledObjects(str(tmp_path))
    scheduler.put(SPEC, b"1")
    assert scheduler.get(GATE) is None
    worker.skip_to("a/task/0/1", place(scheduler))
    assert scheduler.put_if_absent(GATE, b"closed")
    assert not worker.claim_gate(TASK, b"started")


@pytest.mark.parametrize("is_told_where_to_begin", [False, True])
def test_who_is_late_at_a_gate_is_told_so_on_a_full_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_told_where_to_begin: bool
) -> None:
    winner, late = JournaledObjects(str(tmp_path)), JournaledObjects(str(tmp_path))
    late.put("runs/a/other.0.1.spec.json", b"7")
    position = place(winner)
    if is_told_where_to_begin:
        late.skip_to("a/task/0/1", position)
    assert winner.claim_gate(TASK, b"started")

    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(Journal, "_write", full)
    assert not late.claim_gate(TASK, b"started too")
    with pytest.raises(ObjectsError, match="the disk is full"):
        late.claim_gate("a/task/0/2", b"started")


def test_a_worker_that_is_told_to_begin_earlier_than_before_does_so(tmp_path: Path) -> None:
    scheduler, worker = JournaledObjects(str(tmp_path)), JournaledObjects(str(tmp_path))
    scheduler.put(SPEC, b"1")
    assert scheduler.get(GATE) is None
    early = place(scheduler)
    assert scheduler.put_if_absent(GATE, b"closed")
    assert scheduler.get(STATUS) is None
    worker.skip_to("a/task/0/1", place(scheduler, "other.0.1"))
    assert worker.claim_gate("a/other/0/1", b"mine")
    worker.skip_to("a/task/0/1", early)
    assert not worker.claim_gate(TASK, b"started")


def test_a_gate_that_was_cut_off_before_another_document_is_nobodys(tmp_path: Path) -> None:
    scheduler, worker = JournaledObjects(str(tmp_path)), JournaledObjects(str(tmp_path))
    scheduler.put("runs/a/other.0.1.spec.json", b"7")
    position = place(scheduler)
    with file_of(tmp_path).open("ab") as journal:
        journal.write(b"\x1e+gate.json task.0.1 7 sta")
        journal.flush()
        scheduler.put("runs/a/next.0.1.spec.json", b"7")
        journal.write(b"\x1e+gate.json next.0.1 7 sta")
        journal.flush()
        scheduler.put("runs/a/next.0.1.status.json", b"7")
    worker.skip_to("a/task/0/1", position)
    assert worker.claim_gate(TASK, b"started")
    assert worker.claim_gate("a/next/0/1", b"started")
    assert scheduler.get(GATE) == scheduler.get("runs/a/next.0.1.gate.json") == b"started"
    assert not worker.claim_gate(TASK, b"again")


def test_a_gate_of_a_run_that_was_deleted_and_made_anew_is_left_to_others(tmp_path: Path) -> None:
    scheduler, worker = JournaledObjects(str(tmp_path)), JournaledObjects(str(tmp_path))
    scheduler.put("runs/a/large.0.1.spec.json", b"x" * 3000)
    position = place(scheduler)
    scheduler.delete("runs/a")
    scheduler.put("runs/a/other.0.1.spec.json", b"7")
    worker.skip_to("a/task/0/1", position)
    assert not worker.claim_gate(TASK, b"started")


def test_nor_does_who_has_the_deleted_one_open_win_a_gate_that_another_has(tmp_path: Path) -> None:
    scheduler, worker, other = (JournaledObjects(str(tmp_path)) for _ in range(3))
    worker.skip_to("a/task/0/1", place(scheduler))
    assert worker.claim_gate("a/first/0/1", b"started")
    scheduler.delete("runs/a")
    other.skip_to("a/task/0/1", place(scheduler))
    assert other.claim_gate(TASK, b"started")
    time.sleep(2 * LOOK_AGAIN_SECONDS)
    assert not worker.claim_gate(TASK, b"started too")


def test_no_place_is_named_to_begin_at_once_somebody_has_the_gate(tmp_path: Path) -> None:
    scheduler, first, second = (JournaledObjects(str(tmp_path)) for _ in range(3))
    scheduler.put(SPEC, b"1")
    assert place(scheduler) > 0
    assert first.claim_gate(TASK, b"mine")
    assert place(scheduler) == 0
    second.skip_to("a/task/0/1", place(scheduler))
    assert not second.claim_gate(TASK, b"mine too")


def test_nor_if_others_were_launched_since_he_got_it(tmp_path: Path) -> None:
    scheduler, first = JournaledObjects(str(tmp_path)), JournaledObjects(str(tmp_path))
    assert place(scheduler, "before.0.1") > 0
    assert first.claim_gate(TASK, b"mine")
    assert place(scheduler, "other.0.1") > 0
    assert place(scheduler) == 0


def test_a_gate_of_which_only_a_part_was_written_keeps_nobody_else_from_beginning(tmp_path: Path) -> None:
    scheduler, worker = JournaledObjects(str(tmp_path)), JournaledObjects(str(tmp_path))
    place(scheduler)
    with file_of(tmp_path).open("ab") as file:
        file.write(b"\x1e+gate.json task.0.1 100 {")
    assert place(scheduler, "other.0.1") > 0
    worker.skip_to("a/task/0/1", place(scheduler))
    assert worker.claim_gate(TASK, b"mine")


def test_a_spec_that_is_put_again_and_again_makes_the_journal_no_longer(tmp_path: Path) -> None:
    scheduler = JournaledObjects(str(tmp_path))
    for number in range(3):
        scheduler.put_specs([(TASK, b"%d" % number * 1000)])
        assert JournaledObjects(str(tmp_path)).get(SPEC) == b"%d" % number * 1000
    assert file_of(tmp_path).stat().st_size < 2000


def test_specs_that_are_put_at_once_are_read_one_by_one_also_those_that_were_there(tmp_path: Path) -> None:
    scheduler, keys = (
        JournaledObjects(str(tmp_path)),
        [f"runs/{run}/t.{n}.1.spec.json" for run in "ab" for n in range(3)],
    )
    scheduler.put(keys[1], b"before")
    attempts = [f"{run}/t/{n}/1" for run in "ab" for n in range(3)]
    positions = scheduler.put_specs(list(zip(attempts, map(str.encode, keys), strict=True)))
    assert [JournaledObjects(str(tmp_path)).get(key) for key in keys] == [key.encode() for key in keys]
    assert all(position > 0 for position in positions)


def test_a_spec_too_large_for_a_journal_is_put_with_the_others(tmp_path: Path) -> None:
    scheduler, large = JournaledObjects(str(tmp_path)), b"x" * 1_000_000
    scheduler.put_specs([(TASK, large), ("a/other/0/1", b"small")])
    assert scheduler.get(SPEC) == large
    assert scheduler.get("runs/a/other.0.1.spec.json") == b"small"


def test_a_worker_reads_no_more_than_what_came_since(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler, worker = JournaledObjects(str(tmp_path)), JournaledObjects(str(tmp_path))
    for number in range(1, 50):
        scheduler.put(f"runs/a/task.{number}.1.spec.json", b"x" * 1000)
    position = place(scheduler)
    read: list[int] = []
    monkeypatch.setattr("os.pread", lambda d, size, at, real=os.pread: read.append(size) or real(d, size, at))
    worker.skip_to("a/task/0/1", position)
    assert worker.claim_gate(TASK, b"mine")
    worker.put(STATUS, b"done")
    assert sum(read) < 1000


def test_a_worker_that_goes_on_for_long_reads_nothing_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler, worker = JournaledObjects(str(tmp_path)), JournaledObjects(str(tmp_path))
    scheduler.put("runs/a/other.0.1.spec.json", b"7")
    worker.skip_to("a/task/0/1", place(scheduler))
    assert worker.claim_gate(TASK, b"mine")
    read: list[int] = []
    monkeypatch.setattr("os.pread", lambda d, size, at, real=os.pread: read.append(size) or real(d, size, at))
    for number in range(1, 4):
        scheduler.put(f"runs/a/task.{number}.1.spec.json", b"x" * 1000)
        read.clear()
        worker.put_status(TASK, b"%d" % number, number - 1)
        assert worker.get("runs/a/task.0.1.stop.json") is None
        assert not read
        assert scheduler.get(STATUS) == JournaledObjects(str(tmp_path)).get(STATUS) == b"%d" % number
    scheduler.put("runs/a/task.0.1.stop.json", b"stop")
    assert worker.get("runs/a/task.0.1.stop.json") == b"stop"


def test_a_version_that_could_not_be_told_of_in_the_journal_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, reader = JournaledObjects(str(tmp_path)), JournaledObjects(str(tmp_path))
    worker.put_status(TASK, b"running", 0)

    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as disk:
        disk.setattr(Journal, "_write", full)
        with pytest.raises(ObjectsError, match="the disk is full"):
            worker.put_status(TASK, b"still running", 1)
    worker.put_status(TASK, b"done", 1)
    assert reader.get(STATUS) == b"done"


@pytest.mark.parametrize("data", [b"two\nlines", b"\x1e\x1f\n", b"x" * 1_000_000])
def test_a_gate_is_won_once_whatever_is_written_to_it(tmp_path: Path, data: bytes) -> None:
    first, second = JournaledObjects(str(tmp_path)), JournaledObjects(str(tmp_path))
    assert first.put_if_absent(GATE, data)
    assert not second.put_if_absent(GATE, b"small")
    assert second.get(GATE) == data


def test_a_fork_does_not_disturb_where_its_parent_writes(objects: JournaledObjects) -> None:
    objects.put(SPEC, b"1")
    child = os.fork()
    if child == 0:
        won = objects.put_if_absent(GATE, b"child")
        os._exit(0 if won else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not objects.put_if_absent(GATE, b"parent")
    assert objects.get(GATE) == b"child"


def test_a_full_disk_is_told_and_what_was_there_stays(tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("cannot mount a small tmpfs here: behaviour on a full disk not tested")
    try:
        objects = JournaledObjects(str(tmp_path))
        objects.put(SPEC, b"whole")
        with pytest.raises(ObjectsError, match="the disk is full"):
            objects.put_if_absent(GATE, b"x" * 100_000)
        (tmp_path / "filler").write_bytes(b"")
        assert objects.get(GATE) is None
        assert objects.get(SPEC) == b"whole"
        with pytest.raises(ObjectsError, match="the disk is full"):
            objects.put(STATUS, b"x" * 100_000)
        assert objects.get(STATUS) is None
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def test_the_folder_says_which_kind_it_is(tmp_path: Path) -> None:
    assert not isinstance(open_objects(f"file:{tmp_path}"), JournaledObjects)
    assert isinstance(open_objects(f"journal:{tmp_path}"), JournaledObjects)
    assert isinstance(open_objects(f"file:{tmp_path}"), JournaledObjects)


def test_who_won_and_was_not_told_so_learns_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line was written, and the disk failed before that could be confirmed."""
    scheduler, worker = JournaledObjects(str(tmp_path), "full"), JournaledObjects(str(tmp_path), "full")
    worker.skip_to(TASK, place(scheduler))

    def failing(_descriptor: int) -> NoReturn:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as disk:
        disk.setattr("os.fdatasync", failing)
        assert worker.claim_gate(TASK, b"mine")
    assert worker.claim_gate(TASK, b"mine")
    assert not JournaledObjects(str(tmp_path)).claim_gate(TASK, b"another's")


def test_the_disk_of_a_folder_is_the_mount_nearest_to_it() -> None:
    mounts = [b"/dev/a / ext4 rw 0 0\n", b"srv:/x /data nfs4 rw 0 0\n", b"/dev/b /data/my\\040disk xfs rw 0 0\n"]
    assert disk_of("/home/x", mounts) == "ext4"
    assert disk_of("/data/x", mounts) == "nfs4"
    assert disk_of("/data/my disk/x", mounts) == "xfs"
    assert disk_of("/database", mounts) == "ext4"


def test_the_first_status_is_a_line_that_nothing_was_looked_up_for_where_its_worker_has_begun(tmp_path: Path) -> None:
    scheduler, worker = JournaledObjects(str(tmp_path)), JournaledObjects(str(tmp_path))
    [position] = scheduler.put_specs([(TASK, b"do")])
    worker.skip_to("a/task/0/1", position)
    assert worker.claim_gate(TASK, b"won")
    worker.put_status(TASK, b"done", 0)
    assert scheduler.get(STATUS) == b"done"
    assert not (tmp_path / STATUS).exists()


def test_a_status_that_is_too_large_for_a_line_has_a_file(tmp_path: Path) -> None:
    scheduler, worker = JournaledObjects(str(tmp_path)), JournaledObjects(str(tmp_path))
    [position] = scheduler.put_specs([(TASK, b"do")])
    worker.skip_to("a/task/0/1", position)
    data = b"x" * (LARGEST_IN_JOURNAL + 1)
    worker.put_status(TASK, data, 0)
    assert scheduler.get(STATUS) == data
    assert (tmp_path / STATUS).exists()
