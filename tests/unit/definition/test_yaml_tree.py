"""What text means, by the rules of YAML 1.2, and where it stands."""

from __future__ import annotations

import pytest

from ork.definition.nodes import Node, scalar_value
from ork.definition.report import ProblemReport
from ork.definition.yaml_tree import parse_yaml


def tree_of(text: str) -> Node:
    report = ProblemReport("f")
    root = parse_yaml(text.encode(), report)
    assert report.is_clean
    assert root is not None
    return root


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("off", "off"),
        ("null", None),
        ("~", None),
        ("12", 12),
        ("-7", -7),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("12:30:45", "12:30:45"),
        ("2026-01-01", "2026-01-01"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("1.2.3", "1.2.3"),
        ("-", "-"),
    ],
)
def test_a_plain_value_means_what_yaml_1_2_says(written: str, meant: object) -> None:
    value = tree_of(f"k: {written}" if written != "-" else 'k: "-"').get("k")
    assert value is not None
    found = scalar_value(value)
    assert (found, type(found)) == (meant, type(meant))


def test_positions_count_characters_not_bytes() -> None:
    value = tree_of("a: {é日: x}").get("a")
    assert value is not None
    key, below = value.value
    assert (key.line, key.column, key.width, below.column) == (0, 4, 2, 8)


def test_a_byte_order_mark_changes_no_position() -> None:
    root = parse_yaml(b"\xef\xbb\xbfa: 1\n", ProblemReport("f"))
    assert root is not None
    assert root.value[0].column == 0


def test_windows_line_ends_change_no_position() -> None:
    report = ProblemReport("f")
    parse_yaml(b"a: 1\r\nb: &x 2\r\n", report)
    (problem,) = report.problems()
    assert (problem.line, problem.column, problem.source_line) == (2, 4, "b: &x 2")


def test_keys_and_values_come_in_the_order_written() -> None:
    assert [(key.value, value.value) for key, value in tree_of("b: 1\na: 2\n").pairs()] == [("b", "1"), ("a", "2")]


def test_a_file_with_too_many_values_is_given_up_where_the_limit_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ork.definition.yaml_tree.MAX_EVENTS", 50)
    report = ProblemReport("f")
    assert parse_yaml(b"name: [" + b"x," * 100 + b"]", report) is None
    (problem,) = report.problems()
    assert (problem.code, problem.line, problem.column) == ("ORK111", 1, 100)
