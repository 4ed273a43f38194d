"""Postgres's SQL files: complete, used, and never slower with a longer history."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ork.state.sql import parse_blocks
from tests.postgres import Server, fresh_database, server_or_skip

pytest.importorskip("asyncpg", reason="asyncpg is not installed: nothing is tried on Postgres")

import asyncpg

import ork.state.postgres as package
from ork.state.postgres.sql import FOLDER, sql

BLOCKS = {name: text for file in Path(FOLDER).glob("*.sql") for name, text in parse_blocks(file.read_text()).items()}
SEVERAL_STATEMENTS = {"take_your_time"}
FINISHED = 200_000
WAITING = 40
NOW = datetime(2026, 3, 1, tzinfo=UTC)

FILL = f"""
INSERT INTO ork.workflows (name, version, enabled, deployed_at, max_active_runs, fires)
SELECT 'flow' || n, 'v', true, now(), CASE WHEN n < 5 THEN 3 END, false FROM generate_series(0, 20) AS n;
INSERT INTO ork.runs (id, workflow, version, status, trigger, params, created_at, finished_at, round, priority, fresh,
                      epoch, attention, changed, key, owner)
SELECT 'r' || n, 'flow' || n % 20, 'v',
       CASE WHEN n >= {FINISHED} THEN 'pending' WHEN n % 9 = 0 THEN 'failed' ELSE 'success' END,
       'manual', '{{}}', now() - n * interval '1 second', now() - n * interval '1 second', 1, 0, false, 1,
       n >= {FINISHED}, n, 'key' || n, NULL
FROM generate_series(1, {FINISHED + WAITING}) AS n;
INSERT INTO ork.tasks (run_id, ordinal, idx, name, status, executor, attempt, earlier_attempts, finished_at, cache_key)
SELECT 'r' || n, 0, -1, 'a', 'success', 'process', 1, 0, now(), CASE WHEN n % 50 = 0 THEN 'c' || n END
FROM generate_series(1, {FINISHED}) AS n;
INSERT INTO ork.task_changes (run_id, changed, ordinals, idxs)
SELECT 'r' || n, n, '{{0}}', '{{-1}}' FROM generate_series(1, {FINISHED}) AS n;
INSERT INTO ork.attempts (run_id, ordinal, idx, number, name, status, executor, external_name, token_hash, dispatched_at,
                          seq, is_waiting)
SELECT 'r' || n, 0, -1, 1, 'a', CASE WHEN n < 20 THEN 'running' ELSE 'success' END, 'process', 'x', 'x', now(), 0, false
FROM generate_series(1, {FINISHED}) AS n;
INSERT INTO ork.commands (run_id, kind, asked_by, everything, asked_at, done_at)
SELECT 'r' || n, 'cancel', 'eve', false, now(), CASE WHEN n > 9 THEN now() END FROM generate_series(1, 50000) AS n;
INSERT INTO ork.alerts (kind, workflow, run_id, raised_at, due_at, tries, sent)
SELECT 'run', 'flow1', 'r' || n, now(), CASE WHEN n < 9 THEN now() END, 0, '{{}}' FROM generate_series(1, 50000) AS n;
VACUUM ANALYZE;
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with fresh_database() as url:
        yield url


def test_every_block_is_something_postgres_understands(url: str) -> None:
    async def prepare_all() -> dict[str, str]:
        connection = await asyncpg.connect(url)
        wrong = {}
        for name in sorted(set(BLOCKS) - SEVERAL_STATEMENTS):
            try:
                await connection.prepare(sql(name))
            except asyncpg.PostgresError as error:
                wrong[name] = str(error)
        await connection.close()
        return wrong

    assert asyncio.run(prepare_all()) == {}


def test_every_block_has_a_name_of_its_own_and_somebody_who_uses_it() -> None:
    named = [
        name for file in Path(FOLDER).glob("*.sql") for name in re.findall(r"^-- name: (\w+)", file.read_text(), re.M)
    ]
    assert len(named) == len(set(named))
    python = "".join(file.read_text() for file in Path(package.__file__).parent.glob("*.py"))
    assert [name for name in named if f'"{name}"' not in python] == []


@pytest.fixture(scope="module")
def long_history() -> Iterator[tuple[Server, str]]:
    server = server_or_skip()
    with fresh_database() as url:
        database = url.rsplit("/", 1)[1]
        for statement in FILL.split(";\n"):
            if statement.strip():
                server.sql(statement, database)
        yield server, url


WANTED: dict[str, tuple[tuple[Any, ...], str]] = {
    "disown": ((["ann"],), "runs_owned"),
    "list_schedulers": ((None,), "runs_owned"),
    "pending_commands": (("r5",), "commands_waiting"),
    "count_active": ((), "attempts_active"),
    "holders": ((None, None, 5), "attempts_active"),
    "list_runs_by_status": ((["success", "failed"], None, "", 20, None), "runs_by_status"),
    "list_runs_by_workflow": ((["success", "failed"], None, "", 20, None, "flow3"), "runs_by_workflow"),
    "last_runs": ((["flow1", "flow2"], ["success", "failed"]), "runs_by_workflow"),
    "param_values": ((["r5", "r6"], "day"), "runs_pkey"),
    "tasks_of_run": (("r5", -2, -2, None, None, 10, True, False), "tasks_pkey"),
    "tasks_changed_since": (("r5", -2, -2, None, None, 10, True, False, 1), "task_changes_pkey"),
    "find_by_key": (("flow1", "key1"), "runs_key"),
    "find_by_slot": (("flow1", NOW), "runs_slot"),
    "find_cached": (("c50", NOW), "tasks_cached"),
    "changed_runs": ((FINISHED - 5, FINISHED + 5, 10), "runs_changed"),
    "alerts_of_run": (("r5",), "alerts_of_run"),
    "take_alerts": ((NOW, 5, 60.0), "alerts_due"),
    "next_alert_at": ((), "alerts_due"),
    "unsent_alerts": ((5,), "alerts_unsent"),
    "prunable_runs": ((NOW, 10, 0, ["success"]), "runs_by_status"),
    "count_unfinished": ((), "runs_by_status"),
}


@pytest.mark.slow
def test_what_grows_is_read_by_a_small_index_however_long_the_history_is(long_history: tuple[Server, str]) -> None:
    async def plans() -> dict[str, str]:
        connection = await asyncpg.connect(long_history[1])
        found = {}
        for name, (values, _) in WANTED.items():
            rows = await connection.fetch(f"EXPLAIN {sql(name)}", *values)
            found[name] = "\n".join(row[0] for row in rows)
        await connection.close()
        return found

    found = asyncio.run(plans())
    assert {name: plan for name, plan in found.items() if WANTED[name][1] not in plan} == {}
    assert {name: plan for name, plan in found.items() if WALKS.search(plan)} == {}


WALKS = re.compile(r"Seq Scan on (runs|tasks|task_changes|attempts|commands|alerts)\b")
EXPLAIN_ALL = """
LOAD 'auto_explain'; SET client_min_messages = log; SET auto_explain.log_min_duration = 0;
SET auto_explain.log_nested_statements = on;
INSERT INTO ork.schedulers VALUES ('ann', 'ann', 'run', now(), now() + interval '1 hour'),
                                  ('bob', 'bob', 'run', now(), now() - interval '1 hour');
UPDATE ork.runs SET owner = 'ann' WHERE id IN ('r25', 'r26');
INSERT INTO ork.limits VALUES ('*', 5);
"""
TASK = ("r25", 0, -1, "a", "running", "process", 1, 0, *[None] * 16)
ATTEMPT = ("r25", 0, -1, 1, "a", "running", "process", None, "x", "x", NOW, *[None] * 6, 0, None, None, False)
MOVED = ("r25", 0, -1, 1, "running", 1.5, None, None, None, None, 1, 2.5)
ADDED = ("r26", 7, -1, "h", "pending", "process", 0, 0, *[None] * 16)
LAUNCHED = ("r26", 7, -1, 1, "h", "dispatched", "process", None, "x", "x", NOW, *[None] * 6, 0, None, None, False)
RUN = (False, "r25", "success", None, NOW, None, 1, 0, None, None)
IN_FUNCTIONS: dict[str, tuple[tuple[Any, ...], set[str]]] = {
    "claim": (
        ("ann", 10, None, 15.0),
        {"runs_waiting", "runs_queued", "runs_occupying", "runs_owned", "commands_waiting", "runs_pkey"},
    ),
    "commit_step": (
        ("ann", ["r25", "r26"], [1, 1], ["r26"], [RUN], [("r26", False, False)], [TASK], [ATTEMPT], [ADDED], [MOVED],
         None, None, None, [LAUNCHED], [("g", 0, 1)], ["*"], None, [("run", "r25", None, None, None)], ["r25"], NOW, None, 1, "me"),
        {"runs_pkey", "tasks_pkey", "attempts_pkey", "commands_waiting", "attempts_active", "runs_by_workflow", "alerts_of_run"},
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_FUNCTIONS)
def test_so_is_what_functions_look_at(long_history: tuple[Server, str], name: str) -> None:
    async def plans() -> str:
        connection = await asyncpg.connect(long_history[1])
        told: list[str] = []
        connection.add_log_listener(lambda _, message: told.append(message.message))
        changes = connection.transaction()
        await changes.start()
        await connection.execute(EXPLAIN_ALL)
        told.clear()
        await connection.fetch(sql(name), *IN_FUNCTIONS[name][0])
        await changes.rollback()
        await connection.close()
        return "\n".join(told)

    found = asyncio.run(plans())
    assert {index for index in IN_FUNCTIONS[name][1] if index not in found} == set()
    assert WALKS.findall(found) == []
