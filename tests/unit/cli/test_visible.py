from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ork.cli.paint import columns, shorten, visible, visible_bytes


def test_plain_text_stays_as_it_is() -> None:
    assert visible("déjà vu: 100 %") == "déjà vu: 100 %"


def test_escape_sequences_are_shown_instead_of_obeyed() -> None:
    assert visible("\x1b[31mred\x1b[0m") == "␛[31mred␛[0m"


def test_carriage_return_bell_and_delete_are_shown() -> None:
    assert visible("a\rb\x07c\x7f") == "a␍b␇c␡"


def test_text_cannot_be_turned_around() -> None:
    assert visible("a\u202eb") == "a<U+202E>b"


def test_c1_controls_are_shown() -> None:
    assert visible("\x9b31m") == "<U+009B>31m"


def test_a_tab_is_shown_as_blanks() -> None:
    assert visible("a\tb") == "a    b"


def test_bytes_that_are_not_text_become_replacement_characters() -> None:
    assert visible_bytes(b"a\xff\xfeb") == "a\ufffd\ufffdb"


@given(st.text())
def test_no_control_character_is_left_in_any_text(text: str) -> None:
    assert not any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for character in visible(text))


@given(st.text(), st.integers(1, 50))
def test_shortened_text_is_never_longer_than_asked(text: str, limit: int) -> None:
    assert len(shorten(text, limit)) <= limit


def test_wide_letters_take_two_columns_and_marks_none() -> None:
    assert columns("日本") == 4
    assert columns("e\u0301") == 1
