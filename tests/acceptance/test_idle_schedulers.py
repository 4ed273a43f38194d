"""An idle scheduler on another machine: its lease has expired, and its process cannot be checked from this machine."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from ork.model.ids import SchedulerId
from ork.state.sqlite import SqliteStore
from tests.serving import serving

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

NIGHTLY = "name: nightly\nschedule: \"0 2 * * *\"\ntasks:\n  a: {command: 'true'}\n"
HOST, OTHER = "distant+aaaaaaaaaaaa", "distant+bbbbbbbbbbbb"
WORDS = "it cannot be checked from this machine"


def _register(folder: Path, id: str, host: str) -> None:
    async def register() -> None:
        store = SqliteStore(str(folder / ".ork/ork.db"), lease_seconds=0.01, inline=True)
        await store.register(SchedulerId(id), f"{host}/another-boot/4026531836/1/100", "scheduler", datetime.now(UTC))
        await store.close()

    asyncio.run(register())
    time.sleep(0.02)


def test_it_is_listed_as_idle_and_nothing_says_that_no_scheduler_is_running(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / "workflow.yaml").write_text(NIGHTLY)
    assert "no scheduler is running" in ork_cli("deploy", "workflow.yaml", cwd=tmp_path).stderr
    _register(tmp_path, "ann", HOST)
    for command in (["scheduler", "list"], ["status"], ["doctor"]):
        assert WORDS in ork_cli(*command, cwd=tmp_path).stdout, command
    for command in (["deploy", "workflow.yaml"], ["schedules"], ["trigger", "nightly"], ["status"], ["doctor"]):
        done = ork_cli(*command, cwd=tmp_path)
        for wrong in ("no scheduler", "none is running", "died"):
            assert wrong not in done.stdout + done.stderr, command


def test_a_server_says_so_to_its_clients_and_in_its_metrics(
    tmp_path: Path, ork_cli: OrkCli, plain_environment: dict[str, str]
) -> None:
    (tmp_path / "workflow.yaml").write_text(NIGHTLY)
    ork_cli("deploy", "workflow.yaml", cwd=tmp_path)
    _register(tmp_path, "ann", HOST)
    with serving(tmp_path, plain_environment, "--no-scheduler") as served:
        remote = served.remote
        assert WORDS in ork_cli("scheduler", "list", cwd=tmp_path, env=remote).stdout
        assert "no scheduler" not in ork_cli("schedules", cwd=tmp_path, env=remote).stderr
        assert ork_cli("scheduler", "pause", "distant", cwd=tmp_path, env=remote).returncode == 0
        (control,) = json.loads(ork_cli("scheduler", "list", "--json", cwd=tmp_path, env=remote).stdout)["controls"]
        assert control["target"] == HOST
        lines = served.ask("GET", "/metrics")[1].decode().splitlines()
        assert {"ork_schedulers 0.0", "ork_schedulers_unverified 1.0"} <= set(lines)


def test_it_is_paused_by_id_and_by_the_name_of_its_host(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / "workflow.yaml").write_text(NIGHTLY)
    ork_cli("deploy", "workflow.yaml", cwd=tmp_path)
    _register(tmp_path, "ann", HOST)
    for target, recorded in (("ann", "ann"), (HOST, HOST), ("distant", HOST)):
        for command in ("pause", "drain", "resume"):
            done = ork_cli("scheduler", command, target, cwd=tmp_path)
            assert (done.returncode, recorded in done.stdout) == (0, True), done.stderr


def test_a_host_name_that_several_machines_have_is_refused_with_their_full_names(
    tmp_path: Path, ork_cli: OrkCli
) -> None:
    (tmp_path / "workflow.yaml").write_text(NIGHTLY)
    ork_cli("deploy", "workflow.yaml", cwd=tmp_path)
    _register(tmp_path, "ann", HOST)
    _register(tmp_path, "ben", OTHER)
    done = ork_cli("scheduler", "drain", "distant", cwd=tmp_path)
    assert done.returncode == 2
    assert "several machines are called distant" in done.stderr
    assert HOST in done.stderr
    assert OTHER in done.stderr
    for host in (HOST, OTHER):
        assert ork_cli("scheduler", "pause", host, cwd=tmp_path).returncode == 0
    assert ork_cli("scheduler", "resume", "distant", cwd=tmp_path).returncode == 2
