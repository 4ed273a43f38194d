from __future__ import annotations

import io

from ork.terminal import replace_unencodable


def written(text: str, encoding: str) -> bytes:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    replace_unencodable(stream, None)
    stream.write(text)
    stream.flush()
    return raw.getvalue()


def test_glyphs_a_stream_cannot_write_become_ascii() -> None:
    assert written("✓ a · 1 of 2 … ░█ → 日", "ascii") == b"+ a - 1 of 2 ... .# -> ?"


def test_what_can_be_written_stays() -> None:
    assert written("✓ é", "utf-8") == "✓ é".encode()
    assert written("é ✗", "latin-1") == b"\xe9 x"


def test_half_characters_do_no_harm() -> None:
    assert written("a\udcffb", "utf-8") == b"a?b"
