from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ork.errors import DocumentError
from ork.objects import json_text
from ork.objects.json_text import dumps, strict_json

LIMIT = 1 << 20
text = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner) | st.dictionaries(text, inner),
    max_leaves=20,
)


@given(json_values)
def test_what_is_written_is_read_back(value: object) -> None:
    assert strict_json(dumps(value).encode(), max_size=LIMIT) == value


@given(json_values)
def test_what_is_read_back_is_written_the_same_again(value: object) -> None:
    written = dumps(value)
    assert dumps(strict_json(written.encode(), max_size=LIMIT)) == written


@given(json_values)
def test_the_text_is_what_the_json_package_writes(value: object) -> None:
    assert dumps(value) == json.dumps(value, separators=(",", ":"), allow_nan=False)


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:0123456789.eE+-\\untrfalsNaI \n', max_size=30).map(str.encode))
def test_anything_else_is_a_document_error(data: bytes) -> None:
    try:
        value = strict_json(data, max_size=LIMIT)
    except DocumentError:
        return
    assert json.loads(data) == value


def test_keys_keep_their_order() -> None:
    assert dumps({"b": 1, "a": 2}) == '{"b":1,"a":2}'


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_cannot_say_are_not_written(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        dumps([value])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"a":1,"a":2}', "twice"),
        (b"[NaN]", "NaN"),
        (b"-Infinity", "Infinity"),
        (b"1e999", "too large"),
        (b"9" * 401, "digits"),
        (b'"\\u0000"', "NUL"),
        (b'{"a\\u0000":1}', "NUL"),
        (b'"\\ud800"', "surrogate"),
        (b'"\xff"', "UTF-8"),
        (b"[1] 2", "more text"),
        (b"{", "not JSON"),
        (b'"a\x00"', "not JSON"),
        (b"[" * 65 + b"]" * 65, "deeper than 64"),
        (b"[" * 200_000, "nested too deeply|deeper"),
        (b"", "not JSON"),
    ],
)
def test_ambiguous_or_hostile_text_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(DocumentError, match=why):
        strict_json(data, max_size=LIMIT)


def test_depth_and_size_up_to_the_limit_are_fine() -> None:
    assert strict_json(b"[" * 64 + b"]" * 64, max_size=128)
    with pytest.raises(DocumentError, match="larger than"):
        strict_json(b"[" * 64 + b"]" * 64, max_size=127)


def test_a_document_that_is_not_json_is_refused_in_a_fresh_interpreter_too() -> None:
    code = "from ork.objects.json_text import strict_json; strict_json(b'{', max_size=9)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, env=_source_path())
    assert "DocumentError: not JSON: Expecting property name" in done.stderr


def test_without_the_c_parts_the_json_package_gives_the_same() -> None:
    scan, scan_own, encode = json_text._package_parts()
    assert scan_own('{"a":[1,2.5]}', 0) == ({"a": [1, 2.5]}, 13)
    assert scan('{"a":[1,2.5]}', 0) == ({"a": [1, 2.5]}, 13)
    assert "".join(encode({"b": 1, "a": 2}, 0)) == '{"b":1,"a":2}'
    with pytest.raises(DocumentError):
        scan('{"a":1,"a":2}', 0)


def _source_path() -> dict[str, str]:
    home = json_text.__file__.rsplit("/", 3)[0]
    return {"PYTHONPATH": home}
