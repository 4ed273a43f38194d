"""One row that cannot be decoded is set aside and shown; everything beside it goes on (SQLite and Postgres).

All kinds of damage are done to one installation: each to a run or an item of its own. A real `ork serve` then works on
it, and the command line and the API are asked about it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.acceptance.waiting import wait_until
from tests.postgres import fresh_database
from tests.serving import Served, start_ork

pytestmark = pytest.mark.slow

PLAIN = "name: plain\nmax_active_runs: 100\ntasks:\n  a: {command: 'true'}\n  b: {command: 'true', depends_on: [a]}\n"
HELD = "name: held\ntasks:\n  a: {command: [sh, -c, 'while [ ! -e go ]; do sleep 0.05; done']}\n  b: {command: 'true', depends_on: [a]}\n"
# One version each: a damaged one must not be shared with others.
OWN = "name: {name}\ndescription: {name}\ntasks:\n  a: {{command: 'true'}}\n"
TIMED = "name: {name}\nschedule: {{cron: '0 3 * * *', catchup: last}}\ntasks:\n  a: {{command: 'true'}}\n"


class Damage(NamedTuple):
    """`{id}` is the victim's id. `postgres` is the statement there; None: as in SQLite, "": impossible there."""

    sqlite: str
    postgres: str | None = None
    is_in_mid_run: bool = False
    workflow: str = "plain"


def _time(column: str, text: str = "yesterday", moment: str = "infinity") -> Damage:
    statement = "UPDATE {{s}}runs SET {column} = '{value}' WHERE id = '{{id}}'"
    return Damage(statement.format(column=column, value=text), statement.format(column=column, value=moment))


def _run(what: str, postgres: str | None = None) -> Damage:
    wrap = "UPDATE {{s}}runs SET {} WHERE id = '{{id}}'".format
    return Damage(wrap(what), wrap(postgres) if postgres else postgres)


def _below(table: str, what: str, postgres: str | None = None) -> Damage:
    wrap = f"UPDATE {{{{s}}}}{table} SET {{}} WHERE run_id = '{{{{id}}}}' AND name = 'a'".format
    return Damage(wrap(what), wrap(postgres) if postgres else postgres, True, "held")


RUNS = {
    "params not JSON": _run("params = 'oops'"),
    "params empty": _run("params = ''"),
    "params a list": _run("params = '[1]'"),
    "params not UTF-8": _run("params = CAST(x'7b22ff227d' AS TEXT)", ""),
    "status unknown": _run("status = 'exploded'"),
    "trigger unknown": _run("trigger = 'magic'"),
    "created_at": _time("created_at"),
    "created_at out of range": _time("created_at", "2026-13-45T00:00:00Z", "20000-01-01"),
    "scheduled_for": _time("scheduled_for"),
    "started_at without zone": _time("started_at", "2026-01-01T00:00:00", "-infinity"),
    "finished_at": _time("finished_at", "2026-01-01T99:00:00Z", "0044-03-15 BC"),
    "cancel_requested_at": _time("cancel_requested_at"),
    "version missing": _run("version = '000000000000'"),
    "version not JSON": Damage("UPDATE {s}versions SET document = '{{' WHERE workflow = 'own1'", workflow="own1"),
    "version of another shape": Damage(
        "UPDATE {s}versions SET document = '{{}}' WHERE workflow = 'own2'", workflow="own2"
    ),
    "version gone": Damage("DELETE FROM {s}versions WHERE workflow = 'own3'", workflow="own3"),
    "task status unknown": _below("tasks", "status = 'dancing'"),
    "task failure not JSON": _below("tasks", "failure = 'oops'"),
    "task failure without kind": _below("tasks", "failure = '[]'"),
    "task retry_at": _below("tasks", "retry_at = 'soon'", "retry_at = 'infinity'"),
    "task of no workflow": _below("tasks", "name = 'stranger'"),
    "attempt status unknown": _below("attempts", "closing = 'whim'"),
    "attempt dispatched_at": _below("attempts", "dispatched_at = 'then'", "dispatched_at = '30000-01-01'"),
    "attempt failure not JSON": _below("attempts", "failure = '}}'"),
}
"""Damage to runs: each is set aside."""

ITEMS = {
    "schedule not JSON": "UPDATE {s}workflows SET schedule = 'never' WHERE name = 'timed1'",
    "schedule of wrong types": "UPDATE {s}workflows SET schedule = '[1, 2, \"none\", true]' WHERE name = 'timed2'",
    "schedule with a bad cron": 'UPDATE {s}workflows SET schedule = \'["x y", "UTC", "none", true]\' WHERE name = \'timed3\'',
}


REPAIRED = "params not JSON"
SHOWN = ("params not JSON", "task status unknown", "version not JSON", "created_at")
PRINTED = (
    ("runs", "--limit", "200"), ("runs",), ("status",), ("doctor",), ("workflows",), ("schedules",), ("token", "list"),
    ("locations",), ("audit",), ("approvals",), ("alerts",),
)  # fmt: skip
PATHS = (
    "/workflows",
    "/schedules",
    "/tokens",
    "/locations",
    "/audit",
    "/schedulers",
    "/limits",
    "/status",
    "/runs",
    "/runs?param=day:mon",
)


class Scene:
    """An installation with its damage, and how the command line and SQL reach it."""

    def __init__(self, folder: Path, environment: dict[str, str], url: str | None) -> None:
        self.folder = folder
        (folder / "ork.yaml").write_text("alerts: {ops: https://example.org}\n")
        self.url = url
        self.environment = environment if url is None else {**environment, "ORK_STORE": url}
        self.victims: dict[str, str] = {}
        self.neighbours: list[str] = []
        self.served: Served | None = None

    def ork(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ork", *words], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip

    def told(self, *words: str) -> Any:
        answer = self.ork(*words, "--json")
        assert answer.returncode in (0, 1), answer.stderr
        return json.loads(answer.stdout)

    def execute(self, *statements: str) -> None:
        if self.url is None:
            with contextlib.closing(sqlite3.connect(self.folder / ".ork/ork.db", isolation_level=None)) as store:
                store.execute("PRAGMA busy_timeout = 5000")
                for statement in statements:
                    store.execute(statement.replace("{s}", ""))
            return
        asyncio.run(self._execute([statement.replace("{s}", "ork.") for statement in statements]))

    async def _execute(self, statements: list[str]) -> None:
        import asyncpg

        connection = await asyncpg.connect(self.url)
        for statement in statements:
            await connection.execute(statement)
        await connection.close()

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        assert self.served is not None
        return self.served.ask(method, path, body)

    def statement(self, damage: Damage) -> str:
        return damage.sqlite if self.url is None or damage.postgres is None else damage.postgres

    def kinds(self) -> list[str]:
        return [kind for kind, damage in RUNS.items() if self.statement(damage)]


def _damage(scene: Scene) -> None:
    for kind in scene.kinds():
        statement = (
            scene.statement(RUNS[kind]).replace("{id}", scene.victims[kind]).replace("{{", "{").replace("}}", "}")
        )
        scene.execute(statement)
    past = "next_fire = '2026-01-01T03:00:00.000000Z', fires = " + ("1" if scene.url is None else "true")
    scene.execute(f"UPDATE {{s}}workflows SET {past} WHERE name LIKE 'timed%'", *ITEMS.values())
    scene.execute(
        "INSERT INTO {s}commands (run_id, kind, asked_by, everything, asked_at) SELECT id, 'dance', 'me', "
        + ("0, '2026-01-01T00:00:00.000000Z'" if scene.url is None else "false, now()")
        + f" FROM {{s}}runs WHERE id = '{scene.neighbours[0]}'"
    )
    scene.execute("UPDATE {s}tokens SET role = 'king' WHERE name = 'odd'")
    raised = "'2026-01-01T00:00:00.000000Z'" if scene.url is None else "now()"
    sent = "'[]'" if scene.url is None else "'{}'"
    for kind, failure in (("gossip", "NULL"), ("run", "'oops'")):
        scene.execute(
            "INSERT INTO {s}alerts (kind, workflow, failure, raised_at, due_at, tries, sent) "
            f"VALUES ('{kind}', 'plain', {failure}, {raised}, {raised}, 0, {sent})"
        )
    odd = "'when'" if scene.url is None else "'infinity'"
    scene.execute(
        f"INSERT INTO {{s}}audit (at, by, action, subject) VALUES ({odd}, 'me', 'odd.entry', 'x')",
        f"INSERT INTO {{s}}locations (name, source, due_at) VALUES ('odd', '/nowhere', {odd})",
    )


def _prepare(scene: Scene) -> None:
    """All runs exist; those that are to be damaged in mid-run have begun, and their scheduler was killed."""
    folder = scene.folder
    texts = {"plain": PLAIN, "held": HELD}
    texts |= {f"own{number}": OWN.format(name=f"own{number}") for number in (1, 2, 3)}
    texts |= {f"timed{number}": TIMED.format(name=f"timed{number}") for number in (1, 2, 3, 4)}
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    assert scene.ork("deploy", *(f"{name}.yaml" for name in texts)).returncode == 0
    assert scene.ork("token", "create", "--name", "odd").returncode == 0
    scheduler = start_ork(folder, scene.environment, "scheduler")
    assert scheduler.stdout is not None
    assert "ready" in scheduler.stdout.readline()
    begun = [kind for kind in scene.kinds() if RUNS[kind].is_in_mid_run]
    for kind in begun:
        scene.victims[kind] = scene.ork("trigger", "held").stdout.split()[0]
    scene.neighbours.append(scene.ork("trigger", "held").stdout.split()[0])
    wait_until(lambda: _running(scene) >= len(begun) + 1)
    scheduler.kill()
    scheduler.communicate()
    for kind in scene.kinds():
        if kind not in begun:
            scene.victims[kind] = scene.ork("trigger", RUNS[kind].workflow).stdout.split()[0]
    scene.neighbours += [scene.ork("trigger", "plain").stdout.split()[0] for _ in range(3)]


def _running(scene: Scene) -> int:
    runs = scene.told("runs", "--workflow", "held", "--limit", "100")["runs"]
    shown = [scene.told("show", run["id"]) for run in runs if run["status"] == "running"]
    return sum(any(task["status"] == "running" for task in run["tasks"]) for run in shown)


class Seen(NamedTuple):
    """All that was answered: first with everything damaged, then after people cancelled, and repaired one."""

    scene: Scene
    statuses: dict[str, str]
    fired: list[Any]
    quarantined: dict[tuple[str, str], str]
    runs: dict[str, tuple[int, Any]]
    reasons: dict[str, tuple[int, Any]]
    answers: dict[str, tuple[int, Any]]
    told: dict[str, Any]
    printed: dict[str, subprocess.CompletedProcess[str]]
    later: dict[str, str]
    later_quarantined: dict[tuple[str, str], str]
    log: str
    left: set[str]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def seen(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, plain_environment: dict[str, str]
) -> Iterator[Seen]:
    folder = tmp_path_factory.mktemp("damaged")
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(fresh_database()) if request.param == "postgres" else None
        scene = Scene(folder, plain_environment, url)
        _prepare(scene)
        _damage(scene)
        (folder / "go").touch()
        scene.served = Served(start_ork(folder, scene.environment, "serve", "--port", "0"), folder)
        stack.callback(scene.served.process.kill)
        yield _look(scene)


def _look(scene: Scene) -> Seen:
    victims = scene.victims
    _wait(lambda: set(_statuses(scene, scene.neighbours).values()) == {"success"})
    _wait(lambda: all(("run", run) in _quarantined(scene) for run in victims.values()))
    _wait(lambda: {"alert", "command"} <= {kind for kind, _ in _quarantined(scene)})
    _wait(lambda: bool(scene.ask("GET", "/runs?workflow=timed4")[1]["runs"]))
    printed = {" ".join(words): scene.ork(*words) for words in PRINTED}
    for kind in SHOWN:
        for command in ("show", "why"):
            printed[f"{command} {kind}"] = scene.ork(command, victims[kind])
    before = (
        _statuses(scene, scene.neighbours),
        scene.ask("GET", "/runs?workflow=timed4")[1]["runs"],
        _quarantined(scene),
        {kind: scene.ask("GET", f"/runs/{run}") for kind, run in victims.items()},
        {kind: scene.ask("GET", f"/runs/{run}/why") for kind, run in victims.items()},
        {path: scene.ask("GET", path) for path in PATHS},
        {"runs": scene.told("runs", "--limit", "200"), "status": scene.told("status"), "doctor": scene.told("doctor")},
        printed,
    )
    return Seen(scene, *before, *_end(scene))


def _end(scene: Scene) -> tuple[dict[str, str], dict[tuple[str, str], str], str, set[str]]:
    """One is repaired and resumed, the others are cancelled; then all that is old is forgotten."""
    repaired = scene.victims[REPAIRED]
    scene.execute(f"UPDATE {{s}}runs SET params = '{{}}' WHERE id = '{repaired}'")
    scene.ask("POST", f"/runs/{repaired}/resume")
    for run in scene.victims.values():
        if run != repaired:
            scene.ask("POST", f"/runs/{run}/cancel")
    _wait(lambda: {"cancelled", "success"} >= set(_statuses(scene, scene.victims.values()).values()))
    later = {kind: scene.ask("GET", f"/runs/{run}")[1]["status"] for kind, run in scene.victims.items()}
    aside = _quarantined(scene)
    assert scene.served is not None
    scene.served.process.send_signal(signal.SIGTERM)
    _, log = scene.served.process.communicate(timeout=60)
    assert scene.ork("prune", "--older-than", "0s").returncode == 0
    return later, aside, log, {run["id"] for run in scene.told("runs", "--limit", "200")["runs"]}


def _wait(is_so: Callable[[], bool]) -> None:
    """What does not become so is seen by the test that asks for it."""
    with contextlib.suppress(AssertionError):
        wait_until(is_so, 60)


def _statuses(scene: Scene, runs: Iterable[str]) -> dict[str, str]:
    return {run: scene.ask("GET", f"/runs/{run}")[1].get("status", "?") for run in runs}


def _quarantined(scene: Scene) -> dict[tuple[str, str], str]:
    found = scene.ask("GET", "/quarantine")[1].get("quarantined", [])
    return {(item["kind"], item["id"]): item["reason"] for item in found}


def test_the_neighbours_end(seen: Seen) -> None:
    assert set(seen.statuses.values()) == {"success"}


def test_a_good_schedule_fires_beside_damaged_ones(seen: Seen) -> None:
    assert len(seen.fired) == 1


@pytest.mark.parametrize("kind", RUNS)
def test_a_damaged_run_is_set_aside_with_its_reason(seen: Seen, kind: str) -> None:
    if kind not in seen.scene.victims:
        pytest.skip("this store cannot hold such a value")
    reason = seen.quarantined["run", seen.scene.victims[kind]]
    assert reason
    status, shown = seen.runs[kind]
    assert status == 200
    assert shown["status"] == "paused"
    assert shown["note"].startswith(f"set aside: {reason}")
    status, answer = seen.reasons[kind]
    assert status == 200
    assert answer["why"][0].startswith(f"set aside: {reason}")


def test_every_list_shows_what_is_damaged(seen: Seen) -> None:
    victims = seen.scene.victims
    listed = {run["id"]: run for run in seen.told["runs"]["runs"]}
    assert set(victims.values()) <= set(listed)
    assert listed[victims["trigger unknown"]]["unreadable"].startswith("trigger 'magic' cannot be read")
    assert "params 'oops' cannot be read" in listed[victims["params not JSON"]]["note"]
    assert {item["id"] for item in seen.told["status"]["quarantined"]} >= set(victims.values())
    aside = [check for check in seen.told["doctor"]["checks"] if check["subject"] == "set aside"]
    assert any(victims["status unknown"] in check["says"] and check["fix"] for check in aside)
    assert "set aside" in seen.printed["runs"].stdout
    assert "set aside" in seen.printed["status"].stdout
    assert "set aside" in seen.printed["doctor"].stdout


@pytest.mark.parametrize("words", [" ".join(words) for words in PRINTED])
def test_no_command_fails(seen: Seen, words: str) -> None:
    assert seen.printed[words].returncode == 0, seen.printed[words].stderr


@pytest.mark.parametrize("kind", SHOWN)
def test_the_command_line_shows_a_damaged_run(seen: Seen, kind: str) -> None:
    for command in ("show", "why"):
        answer = seen.printed[f"{command} {kind}"]
        assert answer.returncode == 0, answer.stderr
        assert "set aside" in answer.stdout


@pytest.mark.parametrize("path", PATHS)
def test_no_request_fails(seen: Seen, path: str) -> None:
    status, answer = seen.answers[path]
    assert status == 200, answer


def test_damaged_items_are_listed(seen: Seen) -> None:
    kinds = [kind for kind, _ in seen.quarantined]
    assert kinds.count("alert") == 2
    assert kinds.count("command") == 1
    assert {("schedule", "timed1"), ("schedule", "timed2")} <= set(seen.quarantined)
    assert kinds.count("token") == 1


@pytest.mark.parametrize("kind", RUNS)
def test_a_damaged_run_can_be_cancelled_and_a_repaired_one_resumed(seen: Seen, kind: str) -> None:
    if kind not in seen.scene.victims:
        pytest.skip("this store cannot hold such a value")
    assert seen.later[kind] == ("success" if kind == REPAIRED else "cancelled")
    assert ("run", seen.scene.victims[kind]) not in seen.later_quarantined


def test_the_log_names_each_run_and_no_step_fails(seen: Seen) -> None:
    lines = seen.log.splitlines()
    assert not [line for line in lines if "store failed" in line or "Traceback" in line], seen.log
    stranger = seen.scene.victims["task of no workflow"]
    assert [line for line in lines if "step failed" in line and stranger not in line] == []
    repaired = seen.scene.victims[REPAIRED]
    assert len([line for line in lines if "run quarantined" in line and repaired in line]) == 1
    assert len([line for line in lines if "schedule failed" in line]) == 3


def test_what_was_cancelled_can_be_pruned(seen: Seen) -> None:
    odd = {seen.scene.victims[kind] for kind in ("created_at", "created_at out of range")}
    assert seen.left <= odd
