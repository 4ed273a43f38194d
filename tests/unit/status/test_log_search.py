"""Searching logs and indexing their lines."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.objects.layout import attempt_stem, log_key
from ork.objects.local import LocalObjects
from ork.status import log_search
from ork.status.log_search import Hit, index_lines, search_log

KEY = AttemptKey(RunId("00000000000a"), TaskKey("load"), 1)


def log_of(folder: Path, data: bytes) -> LocalObjects:
    objects = LocalObjects(str(folder))
    objects.put(log_key(attempt_stem(KEY)), data)
    return objects


def test_lines_with_the_text_are_found_with_their_numbers(tmp_path: Path) -> None:
    objects = log_of(tmp_path, b"one\ntwo 503 and 503\n\xff503\r\nfour 50\n503")
    found = search_log(objects, KEY, "503", 2, time.monotonic() + 60)
    assert found.hits == [Hit(2, 4, "two 503 and 503"), Hit(3, 20, "\ufffd503\r")]
    assert (found.total, found.searched, found.is_complete) == (3, 37, True)
    assert search_log(objects, KEY, "TWO", 2, time.monotonic() + 60).total == 0
    assert search_log(objects, KEY, "TWO", 2, time.monotonic() + 60, ignore_case=True).total == 1
    assert search_log(objects, KEY, ".", 2, time.monotonic() + 60).total == 0


def test_a_log_that_does_not_exist_has_no_lines(tmp_path: Path) -> None:
    objects = LocalObjects(str(tmp_path))
    assert search_log(objects, KEY, "x", 2, time.monotonic() + 60).total == 0
    assert index_lines(objects, KEY, 100, 60).lines == 0


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.text("ab\n", max_size=60), text=st.text("ab", min_size=1, max_size=3), piece=st.integers(1, 7))
def test_pieces_and_long_lines_do_not_change_what_is_found(
    tmp_path: Path, data: str, text: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_search, "PIECE", piece)
    monkeypatch.setattr(log_search, "LONGEST_LINE", 8)
    objects = LocalObjects(str(tmp_path))
    name = KEY
    objects.put(log_key(attempt_stem(name)), data.encode())
    written = data
    lines = written.split("\n")
    found = search_log(objects, name, text, 100, time.monotonic() + 60)
    expected = [number for number, line in enumerate(lines, 1) if text in line]
    assert [hit.line for hit in found.hits] == expected
    assert found.total == len(expected)
    every = index_lines(objects, name, 2, 60)
    starts = [sum(len(line) + 1 for line in lines[:number]) for number in range(0, len(lines), 2)]
    assert every.offsets == [start for start in starts if start < len(written) or start == 0]
    assert (every.lines, every.size) == (
        written.count("\n") + (not written.endswith("\n") and bool(written)),
        len(written),
    )


def test_a_search_ends_in_time_and_says_how_far_it_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_search, "PIECE", 4)
    objects = log_of(tmp_path, b"abc\n" * 100)
    found = search_log(objects, KEY, "b", 100, time.monotonic() - 1)
    assert (found.total, found.searched, found.is_complete) == (1, 4, False)
    assert not index_lines(objects, KEY, 100, -1.0).is_complete
