from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ork.objects.local import FileLog
from ork.worker.supervise import log as log_module
from ork.worker.supervise.log import LastLine, Log, Stream


class Piped:
    """A log, and streams to it that the test writes to."""

    def __init__(self, folder: Path, count: int = 1, *, keeps_lines: bool = True) -> None:
        self.path = folder / "log"
        self.log = Log(FileLog(str(self.path)))
        pipes = [os.pipe() for _ in range(count)]
        self.ends = [end for _, end in pipes]
        self.streams = [self.log.attach(Stream(source, self.log, keeps_lines=keeps_lines)) for source, _ in pipes]

    def say(self, text: bytes, number: int = 0) -> None:
        os.write(self.ends[number], text)
        self.streams[number].empty()

    def logged(self) -> bytes:
        return self.path.read_bytes() if self.path.exists() else b""

    def close(self) -> None:
        for descriptor in (*self.ends, *(stream.source for stream in self.streams)):
            os.close(descriptor)
        self.log.close()


def test_an_unfinished_line_waits_for_its_end_while_others_go_by(tmp_path: Path) -> None:
    piped = Piped(tmp_path, 2)
    piped.say(b"one\ntw")
    assert piped.logged() == b"one\n"
    piped.say(b"other\n", 1)
    piped.say(b"o\n")
    assert piped.logged() == b"one\nother\ntwo\n"
    piped.close()


def test_an_unfinished_line_is_passed_on_when_it_is_due(tmp_path: Path) -> None:
    piped = Piped(tmp_path)
    piped.say(b"Password: ")
    due = piped.log.due(0.0)
    assert due is not None
    piped.log.tend(due - 0.01)
    assert piped.logged() == b""
    piped.log.tend(due)
    assert piped.logged() == b"Password: "
    assert piped.log.due(0.0) is None
    piped.close()


def test_a_line_that_grows_for_long_is_passed_on_unfinished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter(range(100))
    # Not `time.monotonic` itself, which threads of other tests call as well.
    monkeypatch.setattr(log_module, "time", SimpleNamespace(monotonic=lambda: next(moments) * 0.4))
    piped = Piped(tmp_path)
    latest = []
    for _ in range(10):
        piped.say(b".")
        latest.append(piped.log.due(0.0))
    assert max(each for each in latest if each is not None) == log_module.HELD_SECONDS
    piped.close()


def test_a_line_without_end_is_passed_on_in_parts(tmp_path: Path) -> None:
    piped = Piped(tmp_path)
    piped.say(b"x" * 40_000)
    assert piped.logged() == b""
    piped.say(b"x" * 40_000)
    assert piped.logged() == b"x" * 80_000
    piped.close()


def test_a_stream_that_is_alone_holds_nothing_back(tmp_path: Path) -> None:
    piped = Piped(tmp_path, keeps_lines=False)
    piped.say(b"no end")
    assert piped.logged() == b"no end"
    piped.close()


def test_what_finds_no_room_is_kept_up_to_a_bound_and_the_rest_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "KEPT_BYTES", 8)
    log = Log(FileLog(str(tmp_path / "log")))
    honest, full = os.write, [True]

    def write(descriptor: int, data: bytes) -> int:
        if descriptor == log.descriptor and full[0]:
            raise OSError(28, "No space left on device")
        return honest(descriptor, data)

    monkeypatch.setattr(log_module.os, "write", write)
    log.write(b"first\n")
    log.write(b"second\n")
    log.write(b"third\n")
    assert log.unwritten() == b"first\nse"
    assert log.due(5.0) == 5.0 + log_module.TRY_AGAIN_SECONDS
    full[0] = False
    log.tend(6.0)
    log.write(b"fourth\n")
    expected = b"first\nse\n[ork: 11 bytes of log lost: the disk was full]\nfourth\n"
    assert (tmp_path / "log").read_bytes() == expected
    assert log.due(7.0) is None


def test_a_log_is_made_with_its_first_byte(tmp_path: Path) -> None:
    log = Log(FileLog(str(tmp_path / "log")))
    assert log.flush()
    log.tend(1.0)
    assert not (tmp_path / "log").exists()
    log.write(b"x")
    log.close()
    assert (tmp_path / "log").read_bytes() == b"x"


def test_a_log_that_cannot_be_opened_yet_is_written_when_it_can(tmp_path: Path) -> None:
    log = Log(FileLog(str(tmp_path / "later" / "log")))
    log.write(b"early\n")
    (tmp_path / "later").mkdir()
    log.write(b"late\n")
    assert (tmp_path / "later/log").read_bytes() == b"early\nlate\n"


@given(st.lists(st.sampled_from([b"{", b"}", b"[1]", b" ", b"\n", b"x" * 7, b'"a"'])), st.integers(0, 12))
def test_whether_a_line_was_too_large_does_not_depend_on_how_it_arrives(pieces: list[bytes], limit: int) -> None:
    slowly, at_once = LastLine(limit), LastLine(limit)
    for piece in pieces:
        slowly.feed(piece)
    at_once.feed(b"".join(pieces))
    assert (slowly.line(), slowly.is_too_large) == (at_once.line(), at_once.is_too_large)


@pytest.mark.parametrize(
    ("text", "is_too_large"),
    [
        (b"[1,2,3,4]\n", True),
        (b'  {"a": 1}  \n\n', True),
        (b"[INFO] all is well\n", False),
        (b"plain text\n", False),
        (b"[1,2,3,4]\nok\n", False),
    ],
)
def test_only_a_last_line_that_looks_like_json_is_missed(text: bytes, is_too_large: bool) -> None:
    last = LastLine(5)
    last.feed(text)
    assert (last.line() is None, last.is_too_large) == (not text.endswith(b"ok\n"), is_too_large)
