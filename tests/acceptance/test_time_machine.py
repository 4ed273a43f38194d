"""`ork schedules simulate` as a person meets it: the example of the docs, its errors, and a store that stays as it is."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "schedules.md"
RANGE = ("--from", "2026-03-02T00:00:00Z", "--to", "2026-03-03T00:00:00Z")
HOURLY = 'name: hourly\nschedule: {cron: "0 * * * *"}\ntasks:\n  a: {command: [sh, -c, "echo 7"]}\n'


@pytest.fixture
def ork(tmp_path: Path, ork_cli: OrkCli) -> OrkCli:
    def call(*args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = ork_cli(*args, cwd=tmp_path, env={"TZ": "UTC"})
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return call


def rows(store: Path) -> list[str]:
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
        return list(connection.iterdump())


def test_the_example_of_the_docs_gives_what_they_show(tmp_path: Path, ork: OrkCli) -> None:
    section = PAGE.read_text().partition("## What would happen")[2]
    for name, text in re.findall(r"```yaml\n# (\S+)\n(.*?)```", section, re.S):
        (tmp_path / name).write_text(text)
    for script in ("extract.sh", "load.sh"):
        (tmp_path / script).write_text("#!/bin/sh\n")
        (tmp_path / script).chmod(0o755)
    ((deploy, simulate, *shown),) = [text.splitlines() for text in re.findall(r"```console\n(.*?)```", section, re.S)]
    ork(*shlex.split(deploy.removeprefix("$ ork ")))
    printed = ork(*shlex.split(simulate.removeprefix("$ ork "))).stdout.splitlines()

    def untimed(lines: list[str]) -> list[str]:
        return [re.sub(r"played in .*", "played", line) for line in lines]

    assert untimed(printed) == untimed(shown)


def test_history_gives_durations_and_the_store_stays_as_it_is(tmp_path: Path, ork: OrkCli) -> None:
    (tmp_path / "hourly.yaml").write_text(HOURLY)
    ork("run", "hourly.yaml")
    before = rows(tmp_path / ".ork/ork.db")
    files = sorted(str(path) for path in (tmp_path / ".ork" / "objects").rglob("*"))
    played = json.loads(ork("schedules", "simulate", *RANGE, "--json", "--runs").stdout)
    assert rows(tmp_path / ".ork/ork.db") == before
    assert sorted(str(path) for path in (tmp_path / ".ork" / "objects").rglob("*")) == files
    (hourly,) = played["schedules"]
    assert (hourly["runs"], hourly["success"], len(played["runs"])) == (24, 24, 24)
    assert played["assumed"] == []
    assert hourly["longest_seconds"] < 30, "from history, not the default of a minute"
    assert played["runs"][3]["scheduled_for"] == "2026-03-02T03:00:00.000000Z"
    without = json.loads(ork("schedules", "simulate", *RANGE, "--json", "--default-duration", "2h").stdout)
    assert "runs" not in without
    assert without["schedules"] == played["schedules"]


def test_disabled_and_unknown_workflows_and_tasks(tmp_path: Path, ork: OrkCli) -> None:
    (tmp_path / "ork.yaml").write_text("{}\n")
    assert "no schedules" in ork("schedules", "simulate", code=3).stderr
    (tmp_path / "hourly.yaml").write_text(HOURLY)
    (tmp_path / "plain.yaml").write_text("name: plain\ntasks:\n  b: {command: x}\n")
    ork("deploy", "hourly.yaml", "plain.yaml")
    assert "did you mean `hourly`?" in ork("schedules", "simulate", "hourli", code=3).stderr
    assert "`plain` has no schedule" in ork("schedules", "simulate", "plain", code=2).stderr
    assert "did you mean `hourly.a`?" in ork("schedules", "simulate", "--duration", "hourly.c=1m", code=2).stderr
    ork("workflow", "disable", "hourly")
    assert "no schedule is enabled (hourly)" in ork("schedules", "simulate", code=2).stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--from", "2026-03-02", "--to", "2026-03-01"), "--to is not after --from"),
        (("--from", "2026-03-02", "--to", "2026-03-02"), "--to is not after --from"),
        (("--from", "tomorrow"), "--from tomorrow is not a time"),
        (("--from", "2026-01-01", "--to", "2027-06-01"), "516 days are too long"),
        (("--down", "2026-03-02"), "--down 2026-03-02 has no end"),
        (("--down", "2026-03-02/2026-03-01"), "--down ends before it begins"),
        (("--duration", "a"), "--duration a names no task"),
        (("--duration", "a=soon"), "--duration a: soon is not a duration"),
        (("--default-duration", "5"), "--default-duration: 5 is not a duration"),
        (("--fail-rate", "2"), "fail-rate"),
        (("--server", "http://127.0.0.1:1"), "does not work through a server"),
    ],
)
def test_bad_options_say_what_is_wrong(tmp_path: Path, ork: OrkCli, args: tuple[str, ...], message: str) -> None:
    (tmp_path / "workflow.yaml").write_text(HOURLY)
    assert message in ork("schedules", "simulate", *args, code=2).stderr


def test_too_many_times_are_refused_before_anything_is_played(tmp_path: Path, ork: OrkCli) -> None:
    (tmp_path / "often.yaml").write_text(HOURLY.replace("0 * * * *", "* * * * * *"))
    ork("deploy", "often.yaml")
    refused = ork("schedules", "simulate", "--from", "2026-01-01", "--to", "2026-04-01", code=2)
    assert "more than 100,000 times" in refused.stderr
