"""Only regular files are documents: nothing else is waited for, followed or read, and nothing is read without a bound."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ork.errors import DocumentError, ObjectsError, RunDocumentsError
from ork.objects import layout
from ork.objects.journaled import JOURNAL, JournaledObjects
from ork.objects.local import LocalObjects
from ork.objects.regular import NotRegularError, open_regular, read_regular

STEM = "runs/r/a.1"
KEY = layout.status_key(STEM)
MEGABYTE = 1 << 20


def fifo(path: Path) -> None:
    os.mkfifo(path)


def directory(path: Path) -> None:
    path.mkdir()


def link(path: Path) -> None:
    path.with_name("target").write_bytes(b"{}")
    path.symlink_to("target")


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def socket_file(path: Path) -> None:
    import socket

    here = os.getcwd()
    os.chdir(path.parent)  # the path of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


SPECIAL = [fifo, directory, link, device, socket_file]


@pytest.mark.parametrize("make", SPECIAL)
def test_something_else_in_place_of_a_document_is_refused_at_once(tmp_path: Path, make: Callable[[Path], None]) -> None:
    objects = LocalObjects(str(tmp_path))
    path = tmp_path / KEY
    path.parent.mkdir(parents=True)
    make(path)
    for read in (lambda: objects.get(KEY, limit=100), lambda: objects.get(KEY), lambda: objects.read(KEY, 0, 10)):
        with pytest.raises(DocumentError, match="not a document"):
            read()
    assert objects.size(KEY) is not None


def test_links_are_followed_where_people_put_them(tmp_path: Path) -> None:
    link(tmp_path / "here")
    assert read_regular(str(tmp_path / "here"), 10) == b"{}"
    with pytest.raises(NotRegularError, match="a link"):
        open_regular(str(tmp_path / "here"))


@pytest.mark.parametrize("make", SPECIAL)
def test_something_else_in_place_of_a_journal_is_damage(tmp_path: Path, make: Callable[[Path], None]) -> None:
    (tmp_path / "runs/r").mkdir(parents=True)
    make(tmp_path / "runs/r" / JOURNAL)
    objects = JournaledObjects(str(tmp_path))
    with pytest.raises(RunDocumentsError):
        objects.get(KEY)
    with pytest.raises(RunDocumentsError):
        objects.put_if_absent(layout.gate_key(STEM), b"{}")


def written(tmp_path: Path) -> tuple[JournaledObjects, Path]:
    objects = JournaledObjects(str(tmp_path))
    objects.put(layout.spec_key(STEM), b'{"a":1}')
    return objects, tmp_path / "runs/r" / JOURNAL


def test_a_journal_that_becomes_shorter_is_damage(tmp_path: Path) -> None:
    objects, journal = written(tmp_path)
    assert objects.get(layout.spec_key(STEM)) is not None
    os.truncate(journal, 3)
    with pytest.raises(RunDocumentsError, match="shorter"):
        objects.get(layout.spec_key(STEM))


def test_a_journal_that_was_cut_off_before_it_was_read_loses_only_that_line(tmp_path: Path) -> None:
    objects, journal = written(tmp_path)
    objects.put(layout.spec_key("runs/r/b.1"), b'{"b":1}')
    os.truncate(journal, journal.stat().st_size - 4)
    anew = JournaledObjects(str(tmp_path))
    assert anew.get(layout.spec_key(STEM)) == b'{"a":1}'
    assert anew.get(layout.spec_key("runs/r/b.1")) is None


def test_binary_garbage_between_lines_is_no_document(tmp_path: Path) -> None:
    objects, journal = written(tmp_path)
    with journal.open("ab") as file:
        file.write(os.urandom(300_000).replace(b"\n", b"") + b"\n")
    objects.put(layout.spec_key("runs/r/b.1"), b'{"b":1}')
    anew = JournaledObjects(str(tmp_path))
    assert anew.get(layout.spec_key("runs/r/b.1")) == b'{"b":1}'
    assert set(anew.list("runs/r")) == {layout.spec_key(STEM), layout.spec_key("runs/r/b.1")}


def test_much_that_no_worker_wrote_is_damage(tmp_path: Path) -> None:
    objects, journal = written(tmp_path)
    with journal.open("ab") as file:
        file.write(b"x" * (20 * MEGABYTE))
    with pytest.raises(RunDocumentsError, match="gap"):
        objects.get(layout.status_key(STEM))
    with pytest.raises(ObjectsError):
        objects.put_if_absent(layout.gate_key(STEM), b"{}")


_READS = """
import sys
from ork.errors import ObjectsError
from ork.objects import layout
from ork.objects.journaled import JournaledObjects
objects = JournaledObjects(sys.argv[1])
for act in (
    lambda: objects.get(layout.status_key("runs/r/a.1")),
    lambda: objects.list("runs/r"),
    lambda: objects.put_if_absent(layout.gate_key("runs/r/a.1"), b"{}"),
    lambda: objects.put_specs([("r/c/0/1", b"{}")]),
    lambda: (objects.skip_to("r/d/0/1", 1), objects.claim_gate("r/d/0/1", b"{}")),
):
    try:
        act()
    except ObjectsError as problem:
        print(type(problem).__name__)
# VmHWM and not ru_maxrss: the latter also counts the size of the process that forked this one.
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM:")))
"""


@pytest.mark.slow
def test_a_hole_of_two_gigabytes_in_a_journal_is_not_read_into_memory(tmp_path: Path) -> None:
    _, journal = written(tmp_path)
    os.truncate(journal, 2 << 30)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    done = subprocess.run(
        [sys.executable, "-c", _READS, str(tmp_path)], capture_output=True, text=True, timeout=120, preexec_fn=limited
    )
    assert done.returncode == 0, done.stderr
    *problems, kilobytes = done.stdout.split()
    assert set(problems) == {"RunDocumentsError"}
    assert int(kilobytes) < 150_000
