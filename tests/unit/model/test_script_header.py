"""The header of a script (PEP 723) says what it needs, or what is wrong with it."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ork.model.script_header import HeaderError, ScriptHeader, allows, read_script_header


def script(*lines: str) -> str:
    return "#!/usr/bin/env python\n# /// script\n" + "".join(f"# {line}\n" for line in lines) + "# ///\nprint(1)\n"


def test_a_script_without_a_header_has_none() -> None:
    assert read_script_header("# a comment\nprint(1)\n") is None


def test_dependencies_and_the_python_are_read() -> None:
    text = script('requires-python = ">=3.11"', "dependencies = [", '  "pandas>=2",', '  "rich",', "]")
    assert read_script_header(text) == ScriptHeader(("pandas>=2", "rich"), ">=3.11")


def test_an_empty_header_needs_nothing() -> None:
    assert read_script_header(script("")) == ScriptHeader()


def test_blocks_of_other_tools_are_left_alone() -> None:
    assert read_script_header("# /// other\n# dependencies = 3\n# ///\n") is None


@pytest.mark.parametrize(
    "line",
    ["dependencies = [", "dependencies = 3", "dependencies = [3]", "requires-python = 3", 'requires-python = "new"'],
)
def test_a_header_that_cannot_be_understood_is_refused(line: str) -> None:
    with pytest.raises(HeaderError):
        read_script_header(script(line))


def test_two_headers_are_refused() -> None:
    with pytest.raises(HeaderError):
        read_script_header(script("") + script(""))


@given(st.text())
def test_arbitrary_text_raises_only_header_errors(text: str) -> None:
    with suppress(HeaderError):
        read_script_header(f"# /// script\n# {text}\n# ///\n")


@pytest.mark.parametrize(
    ("specifier", "is_allowed"),
    [
        (">=3.11", True),
        (">=3.12", False),
        (">=3.11,<3.13", True),
        (">=3.11, <3.11.4", False),
        ("==3.11.*", True),
        ("!=3.11.*", False),
        ("==3.12.*", False),
        ("~=3.11", True),
        ("~=3.10.2", False),
        ("~=3.11.2", True),
        ("==3.11.7", True),
        ("<=3.11", False),
        (">3.11", True),
        ("", True),
    ],
)
def test_a_python_is_allowed_as_installers_would(specifier: str, is_allowed: bool) -> None:
    assert allows(specifier, (3, 11, 7)) is is_allowed
