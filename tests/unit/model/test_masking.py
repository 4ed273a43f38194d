"""Values of secrets, replaced wherever they are written."""

from __future__ import annotations

import base64
import json
import random
from urllib.parse import quote, quote_plus

import pytest

from ork.model.masking import MIN_CHARACTERS, Mask, MaskedStream

VALUE = "s3cr/et+ü pass"
FORMS = [
    VALUE,
    json.dumps(VALUE),
    quote(VALUE),
    quote(VALUE, safe=""),
    quote(VALUE, safe="").lower(),
    quote_plus(VALUE),
    base64.b64encode(VALUE.encode()).decode(),
    base64.urlsafe_b64encode(VALUE.encode()).decode(),
    base64.b64encode(f"user:{VALUE}".encode()).decode(),
    base64.b64encode(f"me:{VALUE}".encode()).decode(),
    repr(VALUE),
]


@pytest.mark.parametrize("form", FORMS)
def test_a_value_is_masked_in_every_encoding(form: str) -> None:
    masked = Mask([VALUE]).text(f"<{form}>")
    assert masked.startswith("<")
    assert "***" in masked
    assert masked.strip('<>"').strip("'").removeprefix("dXNlcj").removeprefix("bWU6").strip("pO=6")[:3] == "***"


def test_lines_of_a_long_value_are_found_by_themselves() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nshort\n-----END KEY-----\n"
    mask = Mask([key])
    assert mask.text(f"x {key.strip()} y") == "x *** y"
    assert mask.text("  MIIEvQIBADANBgkqhkiG9w0BAQEF") == "  ***"
    assert mask.text("short") == "short"


@pytest.mark.parametrize("value", ["1", "true", "", "  x  ", "x" * (MIN_CHARACTERS - 1)])
def test_short_values_are_not_masked(value: str) -> None:
    assert not Mask([value])
    assert Mask([value]).text(f"it is {value}") == f"it is {value}"


def test_a_value_that_was_cut_off_is_masked_too() -> None:
    assert Mask(["correct-horse"]).text("no: correct-ho…") == "no: ***…"
    assert Mask(["correct-horse"]).text("no: cor…") == "no: cor…"


def test_json_is_masked_in_names_and_values() -> None:
    mask = Mask(["correct-horse"])
    assert mask.value({"correct-horse": ["x correct-horse", 1, None]}) == {"***": ["x ***", 1, None]}


@pytest.mark.parametrize(
    "values",
    [["correct-horse", "correct-horse-battery"], ["xyzabab", "ababqqq"], ["aaaaaa", "aaaaaaaab"], ["abcabc"]],
)
def test_masking_does_not_depend_on_the_size_of_pieces(values: list[str]) -> None:
    mask, dice = Mask(values), random.Random(1)
    words = [*values, "x", "a", "ab", "abc", "correct-", "\n", "q"]
    for _ in range(2000):
        data = "".join(dice.choice(words) for _ in range(dice.randint(1, 8))).encode()
        stream, out, place = MaskedStream(mask), b"", 0
        while place < len(data):
            size = dice.randint(1, 6)
            out += stream.feed(data[place : place + size])
            assert not mask.is_in(out)
            place += size
        assert out + stream.flush() == mask.data(data)
