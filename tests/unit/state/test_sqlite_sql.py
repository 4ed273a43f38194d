"""The SQL files: complete, used, and never slower with a longer history."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ork.state.sqlite as package
from ork.state.sqlite.connection import Connection
from ork.state.sqlite.schema import bring_up_to_date
from ork.state.sqlite.sql import FOLDER, parse_blocks, sql

SOURCES = Path(package.__file__).parent
BLOCKS = {name: text for file in Path(FOLDER).glob("*.sql") for name, text in parse_blocks(file.read_text()).items()}
NOT_STATEMENTS = {"settings"}


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    opened = Connection(":memory:")
    bring_up_to_date(opened)
    yield opened
    opened.close()


def plan(connection: Connection, name: str) -> list[str]:
    text = sql(name)
    values = dict.fromkeys(re.findall(r":(\w+)", text), "1") or ["1"] * text.count("?")
    return [row[3] for row in connection._raw.execute(f"EXPLAIN QUERY PLAN {text}", values)]


@pytest.mark.parametrize("name", sorted(set(BLOCKS) - NOT_STATEMENTS))
def test_every_block_is_one_statement_sqlite_understands(connection: Connection, name: str) -> None:
    plan(connection, name)


def test_every_block_has_a_name_of_its_own_and_somebody_who_uses_it() -> None:
    named = [
        name for file in Path(FOLDER).glob("*.sql") for name in re.findall(r"^-- name: (\w+)", file.read_text(), re.M)
    ]
    assert len(named) == len(set(named))
    python = "".join(file.read_text() for file in SOURCES.glob("*.py"))
    durabilities = {"durability_normal", "durability_full"}
    assert [name for name in named if f'"{name}"' not in python and name not in durabilities] == []


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("claimable_runs", "COVERING INDEX runs_waiting"),
        ("look_for_work", "INDEX runs_waiting"),
        ("room_in_workflows", "INDEX runs_occupying (workflow=?)"),
        ("release_all", "INDEX runs_owned (owner=?)"),
        ("list_schedulers", "INDEX runs_owned (owner=?)"),
        ("commands_for", "INDEX commands_waiting"),
        ("pending_commands", "INDEX commands_waiting (run_id=?)"),
        ("count_active", "COVERING INDEX attempts_active"),
        ("holders", "INDEX attempts_active"),
        ("settle_run", "INDEX attempts_active (run_id=?)"),
        ("list_runs_by_status", "INDEX runs_by_status (status=? AND created_at>? AND (created_at,id)<(?,?))"),
        (
            "list_runs_by_workflow",
            "INDEX runs_by_workflow (workflow=? AND status=? AND created_at>? AND (created_at,id)<(?,?))",
        ),
        ("tasks_changed_since", "INDEX tasks_changed (run_id=? AND changed>?)"),
        ("find_scheduled", "INDEX runs_slot (workflow=? AND scheduled_for=?)"),
        ("find_by_key", "INDEX runs_key (workflow=? AND key=?)"),
        ("find_by_slot", "INDEX runs_slot (workflow=? AND scheduled_for=?)"),
        ("alerts_of_run", "INDEX alerts_of_run (run_id=?)"),
        ("due_schedules", "INDEX workflows_due"),
        ("next_fire_at", "INDEX workflows_due (next_fire>?)"),
        ("due_alerts", "INDEX alerts_due (due_at<?)"),
        ("next_alert_at", "INDEX alerts_due"),
        ("unsent_alerts", "INDEX alerts_unsent"),
        ("prunable_runs", "INDEX runs_by_status (status=? AND created_at<?)"),
        ("add_recovery", "INDEX runs_by_workflow (workflow=? AND status=? AND (created_at,id)<(?,?))"),
        ("forget_commands", "INDEX commands_done (run_id=?)"),
        ("forget_alerts", "INDEX alerts_of_run (run_id=?)"),
        ("forget_told", "INDEX alerts_told (raised_at<?)"),
    ],
)
def test_what_grows_is_read_by_an_index(connection: Connection, name: str, index: str) -> None:
    assert any(index in step for step in plan(connection, name)), plan(connection, name)


GROWING = ("runs", "tasks", "attempts", "commands", "alerts")


@pytest.mark.parametrize("name", sorted(set(BLOCKS) - NOT_STATEMENTS))
def test_no_statement_walks_over_a_table_that_grows(connection: Connection, name: str) -> None:
    small = ("runs_waiting", "runs_owned", "runs_occupying", "attempts_active", "commands_waiting", "alerts_unsent")
    aliases = {"r": "runs", "t": "tasks", "a": "attempts", "c": "commands"}
    for step in plan(connection, name):
        found = re.match(r"SCAN (\w+)(.*)", step)
        if found and aliases.get(found[1], found[1]) in GROWING:
            assert any(index in found[2] for index in small), step


@pytest.mark.parametrize("name", ["claimable_runs", "list_runs_by_status", "list_runs_by_workflow", "tasks_of_run"])
def test_what_is_asked_for_in_order_is_read_in_order(connection: Connection, name: str) -> None:
    assert not any("TEMP B-TREE" in step for step in plan(connection, name)), plan(connection, name)
