"""A run with a damaged row, as an operator meets it: found by `ork doctor`, set aside, not resumed before it is repaired."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.acceptance.waiting import wait_until
from tests.postgres import fresh_database
from tests.serving import serving

pytestmark = pytest.mark.slow

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]
FLOW = "name: flow\ntasks:\n  a: {command: 'true'}\n"


class Scene(NamedTuple):
    folder: Path
    environment: dict[str, str]
    cli: OrkCli

    def ork(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.cli(*words, cwd=self.folder, env=self.environment)

    def status(self, run: str) -> str:
        return str(json.loads(self.ork("show", run, "--json").stdout)["status"])

    def execute(self, statement: str) -> None:
        """Tables are called `{s}name`."""
        url = self.environment.get("ORK_STORE")
        if url is not None:
            asyncio.run(_execute(url, statement.replace("{s}", "ork.")))
            return
        with contextlib.closing(sqlite3.connect(self.folder / ".ork/ork.db", isolation_level=None)) as store:
            store.execute(statement.replace("{s}", ""))


async def _execute(url: str, statement: str) -> None:
    import asyncpg

    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.close()


@pytest.fixture(params=["sqlite", "postgres"])
def scene(
    request: pytest.FixtureRequest, tmp_path: Path, plain_environment: dict[str, str], ork_cli: OrkCli
) -> Iterator[Scene]:
    (tmp_path / "flow.yaml").write_text(FLOW)
    with contextlib.ExitStack() as stack:
        environment = dict(plain_environment)
        if request.param == "postgres":
            environment["ORK_STORE"] = stack.enter_context(fresh_database())
        made = Scene(tmp_path, environment, ork_cli)
        assert made.ork("deploy", "flow.yaml").returncode == 0
        yield made


def damaged(scene: Scene) -> str:
    run = scene.ork("trigger", "flow").stdout.split()[0]
    scene.execute(f"UPDATE {{s}}runs SET params = 'oops' WHERE id = '{run}'")
    return run


def test_doctor_finds_it_before_a_scheduler_does(scene: Scene) -> None:
    run, sound = damaged(scene), scene.ork("trigger", "flow").stdout.split()[0]
    said = scene.ork("doctor").stdout
    assert f"run {run}: params 'oops' cannot be read" in said
    assert sound not in said
    scene.ork("tick")
    found = [line for line in scene.ork("doctor").stdout.splitlines() if run in line]
    assert [line[:11] for line in found] == ["! set aside"]


def test_doctor_finds_a_missing_version(scene: Scene) -> None:
    orphan = scene.ork("trigger", "flow").stdout.split()[0]
    scene.execute(f"UPDATE {{s}}runs SET version = '000000000000' WHERE id = '{orphan}'")
    assert f"run {orphan}: version 000000000000 is missing" in scene.ork("doctor").stdout


def test_resume_and_retry_are_refused_until_it_is_repaired(scene: Scene) -> None:
    run = damaged(scene)
    scene.ork("tick")
    for _ in range(2):
        refused = scene.ork("resume", run)
        assert refused.returncode == 4
        assert "it is still unreadable: params 'oops' cannot be read" in refused.stderr
        assert f"`ork cancel {run[:4]}" in refused.stderr
    scene.execute(f"UPDATE {{s}}runs SET params = '{{}}' WHERE id = '{run}'")
    assert scene.ork("resume", run).returncode == 0
    scene.ork("tick")
    wait_until(lambda: scene.ork("tick").returncode == 0 and scene.status(run) == "success")


def test_the_api_refuses_it_too(scene: Scene) -> None:
    run = damaged(scene)
    scene.ork("tick")
    with serving(scene.folder, scene.environment, "--port", "0") as served:
        status, answer = served.ask("POST", f"/runs/{run}/resume")
    assert status == 409
    assert "it is still unreadable: params 'oops' cannot be read" in json.dumps(answer)


def test_a_damaged_run_can_be_cancelled(scene: Scene) -> None:
    run = damaged(scene)
    scene.ork("tick")
    assert scene.ork("cancel", run).returncode == 0
    wait_until(lambda: scene.ork("tick").returncode == 0 and scene.status(run) == "cancelled")
