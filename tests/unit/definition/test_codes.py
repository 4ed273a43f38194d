"""The table of codes is complete: nothing is raised that cannot be explained, nothing explained that is not raised."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ork.definition.codes import all_codes, explain
from ork.definition.codes.page import render_page
from ork.errors import NotFoundError


def codes_in_sources(tree: Path) -> set[str]:
    sources = (path for path in (tree / "src").rglob("*.py") if "codes" not in path.parts)
    return {code for path in sources for code in re.findall(r"\"(ORK\d{3})\"", path.read_text())}


def test_every_code_that_is_raised_is_explained_and_the_other_way_round(tree: Path) -> None:
    assert codes_in_sources(tree) == set(all_codes())


def test_every_explanation_has_a_title_a_reason_and_its_own_code() -> None:
    for code, explanation in all_codes().items():
        assert explanation.code == code
        assert explanation.title
        assert explanation.why.endswith(".")
        assert bool(explanation.right) or not explanation.wrong


def test_an_explanation_shows_what_is_wrong_and_what_is_right() -> None:
    text = explain("ork201")
    assert text.startswith("ORK201: unknown task in `depends_on`\n")
    assert "Wrong:\n    tasks:" in text
    assert "Right:\n    tasks:" in text
    assert explain("201") == text


def test_the_page_of_codes_is_up_to_date(tree: Path) -> None:
    hint = "run `python -m ork.definition.codes.page > docs/codes.md`"
    assert (tree / "docs" / "codes.md").read_text() == render_page(), hint


def test_an_unknown_code_is_not_found() -> None:
    with pytest.raises(NotFoundError):
        explain("ORK999")
