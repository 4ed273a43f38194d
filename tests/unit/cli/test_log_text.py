from __future__ import annotations

import io
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ork.cli.log_text import MAX_JSON_LINE, MAX_LINE, ExactSink, JsonSink, PrefixedSink, TerminalSink, structured

CHUNKS = st.lists(st.binary(max_size=50), max_size=10)


@given(CHUNKS)
def test_for_a_program_every_byte_is_passed_on(chunks: list[bytes]) -> None:
    out = io.BytesIO()
    sink = ExactSink(out)
    for chunk in chunks:
        sink.write(chunk)
    sink.close()
    assert out.getvalue() == b"".join(chunks)


@given(CHUNKS)
def test_prefixed_lines_hold_the_same_bytes_however_they_arrive(chunks: list[bytes]) -> None:
    out = io.BytesIO()
    sink = PrefixedSink(out, b"load | ")
    for chunk in chunks:
        sink.write(chunk)
    sink.close()
    whole = b"".join(chunks)
    expected = b"".join(b"load | " + part + b"\n" for part in whole.removesuffix(b"\n").split(b"\n")) if whole else b""
    assert out.getvalue() == expected


@given(CHUNKS)
def test_nothing_acts_on_a_terminal_but_the_ends_of_lines(chunks: list[bytes]) -> None:
    out = io.BytesIO()
    sink = TerminalSink(out)
    for chunk in chunks:
        sink.write(chunk)
    sink.close()
    assert not any(character < " " and character != "\n" for character in out.getvalue().decode())


def test_text_split_between_chunks_is_put_together() -> None:
    out = io.BytesIO()
    sink = TerminalSink(out, "load | ")
    for byte in "žluť\nkůň".encode():
        sink.write(bytes([byte]))
    sink.close()
    assert out.getvalue().decode() == "load | žluť\nload | kůň\n"


def test_an_endless_line_is_cut_and_counted_in_bounded_memory() -> None:
    out = io.BytesIO()
    sink = TerminalSink(out)
    for _ in range(100):
        sink.write(b"x" * 65536)
    sink.write(b"\nnext\n")
    sink.close()
    assert out.getvalue().decode() == "x" * MAX_LINE + f" … {100 * 65536 - MAX_LINE:,} more characters\nnext\n"


@given(CHUNKS)
def test_json_lines_hold_the_same_text_however_it_arrives(chunks: list[bytes]) -> None:
    out = io.BytesIO()
    sink = JsonSink(out, {"task": "a"})
    for chunk in chunks:
        sink.write(chunk)
    sink.close()
    lines = [json.loads(text) for text in out.getvalue().splitlines()]
    whole = b"".join(chunks).removesuffix(b"\n")
    assert [each["line"] for each in lines] == (
        [part.decode("utf-8", "replace") for part in whole.split(b"\n")] if b"".join(chunks) else []
    )


def test_a_json_line_that_is_too_long_comes_in_parts() -> None:
    out = io.BytesIO()
    sink = JsonSink(out, {})
    sink.write(b"x" * (MAX_JSON_LINE + 1) + b"\n")
    parts = [json.loads(text) for text in out.getvalue().splitlines()]
    assert [(len(each["line"]), each.get("continues", False)) for each in parts] == [(MAX_JSON_LINE, True), (1, False)]


@pytest.mark.parametrize(
    ("line", "message", "fields"),
    [
        ("INFO loaded rows=1", "loaded", {"rows": 1}),
        ('ERROR a=b no code="1" ids=[1,2] kind=x', "a=b no", {"code": "1", "ids": [1, 2], "kind": "x"}),
        ("INFO loaded nan=NaN", "loaded", {"nan": "NaN"}),
        ("INFO loaded", None, None),
        ("rows=1", None, None),
        ('INFO open a="', None, None),
    ],
)
def test_fields_are_taken_from_lines_of_the_context_log(line: str, message: str | None, fields: object) -> None:
    found = structured(line)
    assert (found.get("message"), found.get("fields")) == (message, fields)


def test_a_hostile_line_is_taken_apart_in_bounded_time() -> None:
    begun = time.monotonic()
    structured("INFO " + ' a="' * 4000)
    structured("INFO " + " a=[" * 4000)
    assert time.monotonic() - begun < 5
