"""Schedules as a person meets them: listed, planned, fired by ticks alone, filled up, told of, and forgotten."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.waiting import wait_until
from tests.loopback import loopback

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]
Ork = Callable[..., Any]


@pytest.fixture
def ork(tmp_path: Path, ork_cli: OrkCli) -> Ork:
    """`ork("runs")` gives what `--json` says; `code=` is the exit code it must have."""

    def call(*args: str, code: int = 0, **env: str) -> Any:
        done = ork_cli(*args, "--json", cwd=tmp_path, env=env)
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)

    return call


def write(folder: Path, text: str, name: str = "flow.yaml") -> str:
    (folder / name).write_text(text)
    return name


DAILY = 'name: daily\nschedule: {cron: "30 2 * * *", timezone: America/New_York}\ntasks:\n  a: {command: echo 1}\n'


def test_schedules_shows_the_next_times_in_order(tmp_path: Path, ork: Ork, ork_cli: OrkCli) -> None:
    ork("deploy", write(tmp_path, DAILY))
    (entry,) = ork("schedules", "--next", "3", "--after", "2026-03-07T12:00:00Z")["schedules"]
    assert (entry["workflow"], entry["cron"], entry["timezone"]) == ("daily", "30 2 * * *", "America/New_York")
    assert entry["next"] == [
        "2026-03-08T07:00:00.000000Z", "2026-03-09T06:30:00.000000Z", "2026-03-10T06:30:00.000000Z",
    ]  # fmt: skip
    assert "EDT" in ork_cli("schedules", "--after", "2026-06-01", cwd=tmp_path).stdout
    ork("workflow", "disable", "daily")
    assert ork("schedules")["schedules"][0]["next"] == []
    ork("workflow", "enable", "daily")
    assert len(ork("schedules")["schedules"][0]["next"]) == 1


def test_plan_says_what_a_deploy_would_change_and_changes_nothing(tmp_path: Path, ork: Ork) -> None:
    file = write(tmp_path, DAILY)
    (new,) = ork("plan", file)["workflows"]
    assert (new["state"], new["added"], len(new["next"])) == ("new", ["a"], 3)
    assert any("there is no 02:30" in warning and "03:00" in warning for warning in new["warnings"])
    assert not (tmp_path / ".ork").exists()
    ork("deploy", file)
    assert ork("plan", file)["workflows"][0]["state"] == "unchanged"
    write(tmp_path, 'name: daily\nschedule: "@hourly"\ntasks:\n  a: {command: echo 2}\n  b: {command: echo 3}\n')
    (changed,) = ork("plan", file)["workflows"]
    assert (changed["state"], changed["added"], changed["removed"]) == ("changed", ["b"], [])
    assert changed["changed"] == {"a": ["action"]}
    assert changed["keys"] == ["schedule"]


def test_a_backfill_creates_the_runs_of_past_times_once(tmp_path: Path, ork: Ork) -> None:
    ork("deploy", write(tmp_path, DAILY))
    span = ("daily", "--from", "2026-03-07", "--to", "2026-03-09")
    assert ork("backfill", *span, "--dry-run")["times"] == [
        "2026-03-07T07:30:00.000000Z", "2026-03-08T07:00:00.000000Z", "2026-03-09T06:30:00.000000Z",
    ]  # fmt: skip
    assert ork("backfill", *span) == {"created": 3, "existing": 0, "total": 3, "is_served": False}
    assert ork("backfill", *span) == {"created": 0, "existing": 3, "total": 3, "is_served": False}
    assert {run["trigger"] for run in ork("runs")["runs"]} == {"backfill"}
    assert len(ork("runs")["runs"]) == 3
    plan = ork("backfill", "daily", "--from", "2026-03-09", "--to", "2026-03-10", "--dry-run")["plan"]
    assert [(each["state"], each["status"]) for each in plan] == [("exists", "pending"), ("new", None)]


def test_a_calendar_shows_runs_and_clock_changes_and_runs_are_searched(
    tmp_path: Path, ork: Ork, ork_cli: OrkCli
) -> None:
    ork("deploy", write(tmp_path, DAILY))
    ork("backfill", "daily", "--from", "2026-03-07", "--to", "2026-03-09")
    span = ("schedules", "calendar", "daily", "--from", "2026-03-05T00:00:00Z", "--to", "2026-03-12T00:00:00Z")
    (row,) = ork(*span)["workflows"]
    assert [each["state"] for each in row["times"]] == ["run"] * 3  # no others: it was deployed later
    assert [note["kind"] for note in row["notes"]] == ["skipped"]
    text = ork_cli(*span, cwd=tmp_path).stdout
    assert "Sun 2026-03-08 03:00:00 EDT" in text
    assert "there is no 02:30 on 2026-03-08 in America/New_York: it fires at 03:00 instead" in text
    assert "at most 92 days" in ork_cli("schedules", "calendar", "--help", cwd=tmp_path).stdout.lower()
    assert ork(*span[:4], "2026-01-01", "--to", "2026-09-01", code=2)["error"]["code"]
    assert len(ork("runs", "--search", "AIL", "--trigger", "backfill")["runs"]) == 3
    assert ork("runs", "--trigger", "event")["runs"] == []
    assert ork("runs", "--longest")["runs"] == []


def test_a_workflow_without_a_schedule_cannot_be_filled_up(tmp_path: Path, ork: Ork) -> None:
    ork("deploy", write(tmp_path, "name: flow\ntasks:\n  a: {command: echo 1}\n"))
    assert (
        "no schedule"
        in ork("backfill", "flow", "--from", "2026-01-01", "--to", "2026-01-02", code=4)["error"]["message"]
    )


def test_runs_diff_shows_params_states_and_outputs(tmp_path: Path, ork: Ork, ork_cli: OrkCli) -> None:
    file = write(
        tmp_path, "name: flow\nparams: {n: {type: int, default: 1}}\ntasks:\n  a: {command: [echo, {ref: params.n}]}\n"
    )
    one, two = (ork("run", file, "-p", f"n={n}")["id"] for n in (1, 2))
    difference = ork("runs", "diff", one, two)
    assert difference["params"] == {"n": {"a": 1, "b": 2}}
    assert difference["tasks"][0]["output"] == {"a": "1", "b": "2"}
    assert "status" not in difference
    assert "param n" in ork_cli("runs", "diff", one, two, cwd=tmp_path).stdout
    assert ork("runs", "--limit", "1")["runs"][0]["id"] == two


def test_prune_forgets_old_runs_with_their_folders(tmp_path: Path, ork: Ork) -> None:
    file = write(tmp_path, "name: flow\ntasks:\n  a: {command: echo 1}\n")
    runs = [ork("run", file)["id"] for _ in range(3)]
    assert ork("prune", "--older-than", "1h")["runs"] == []
    assert ork("prune", "--older-than", "0s", "--keep-last", "1", "--dry-run")["runs"] == runs[:2]
    assert ork("prune", "--older-than", "0s", "--keep-last", "1")["runs"] == runs[:2]
    assert [run["id"] for run in ork("runs")["runs"]] == runs[2:]
    assert [folder.name for folder in (tmp_path / ".ork/objects/runs").iterdir()] == runs[2:]


def test_whole_workflows_run_by_ticks_alone(tmp_path: Path, ork: Ork) -> None:
    """Nothing but `ork tick`: schedules fire, tasks follow each other, a failure is told of."""
    with loopback() as site:
        site.answers["/hook"] = (200, {})
        write(tmp_path, f"alerts: {{ops: {site.url}/hook}}\noutbound: {{allow: [127.0.0.1]}}\n", "ork.yaml")
        text = 'name: flow\nschedule: "* * * * * *"\nmax_active_runs: 1\nalerts: [ops]\ntasks:\n'
        text += "  a: {command: echo 1}\n  b: {command: 'exit 3', depends_on: [a]}\n"
        ork("deploy", write(tmp_path, text))
        wait_until(lambda: ork("tick")["launched"] > 0)
        ork("workflow", "disable", "flow")

        def all_ended() -> bool:
            assert "next_wake" in ork("tick")
            return all(run["status"] == "failed" for run in ork("runs", "--limit", "100")["runs"])

        wait_until(all_ended)
        ork("tick")
        runs = ork("runs", "--limit", "100")["runs"]
        slots = [run["scheduled_for"] for run in runs]
        assert len(set(slots)) == len(slots) > 0
        told = sorted((body["run"], body["kind"]) for body in (json.loads(asked.body) for asked in site.asked))
        assert told == sorted((run["id"], kind) for run in runs for kind in ("run", "task"))


def test_a_tick_says_when_the_next_schedule_is_due(tmp_path: Path, ork: Ork) -> None:
    ork("deploy", write(tmp_path, 'name: yearly\nschedule: "0 0 1 1 *"\ntasks:\n  a: {command: echo 1}\n'))
    year = time.gmtime().tm_year + 1
    assert ork("tick")["next_wake"] == f"{year}-01-01T00:00:00.000000Z"


def test_a_worker_wakes_a_sleeping_control_plane(tmp_path: Path, ork: Ork) -> None:
    with loopback() as site:
        site.answers["/wake"] = (202, {})
        ork("deploy", write(tmp_path, "name: flow\ntasks:\n  a: {command: echo 1}\n"))
        run = ork("trigger", "flow")["id"]
        assert ork("tick", ORK_WAKE_URL=f"{site.url}/wake")["launched"] == 1
        wait_until(lambda: site.count("POST", "/wake") == 1)
        assert site.asked[0].headers["X-Ork-Attempt"] == f"{run}/a/0/1"
        ork("tick")
        assert ork("show", run)["status"] == "success"


def test_run_tells_of_its_own_failure_and_of_the_recovery(tmp_path: Path, ork: Ork) -> None:
    with loopback() as site:
        site.answers["/hook"] = (200, {})
        hook = f"alerts: {{ops: {{webhook: {site.url}/hook, on: [run, recovery], every_workflow: true}}}}\n"
        write(tmp_path, hook + "outbound: {allow: [127.0.0.1]}\n", "ork.yaml")
        ork("run", write(tmp_path, "name: flow\ntasks:\n  a: {command: exit 3}\n"), code=1)
        ork("run", write(tmp_path, "name: flow\ntasks:\n  a: {command: echo 1}\n"))
        ork("run", "flow.yaml")
        assert [json.loads(asked.body)["kind"] for asked in site.asked] == ["run", "recovery"]


def test_a_run_tells_once_of_alerts_that_cannot_be_sent(tmp_path: Path, ork_cli: OrkCli) -> None:
    write(tmp_path, "alerts: {ops: http://127.0.0.1:1/hook}\n", "ork.yaml")
    flow = write(tmp_path, "name: flow\nalerts: [ops]\ntasks:\n  a: {command: exit 3}\n")
    done = ork_cli("run", flow, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("alert not sent: ops: 127.0.0.1 is not a public address") == 1
    told = ork_cli("status", cwd=tmp_path).stdout
    assert re.search(
        r"^alerts +2 could not be sent; the last is “flow: run \w+ failed” \(tried once, due again in", told, re.M
    )
    unsent, _ = json.loads(ork_cli("status", "--json", cwd=tmp_path).stdout)["unsent_alerts"]
    assert (unsent["kind"], unsent["tries"]) == ("run", 1)
    assert 'outbound: {allow: ["127.0.0.1:1"]}' in unsent["error"]


def test_an_alert_that_makes_no_sense_is_refused_before_anything_runs(tmp_path: Path, ork: Ork) -> None:
    write(tmp_path, "alerts: {ops: {webhok: https://example.org}}\n", "ork.yaml")
    error = ork("run", write(tmp_path, "name: flow\ntasks:\n  a: {command: echo 1}\n"), code=2)["error"]
    assert "`webhok`" in error["message"]


def test_lists_say_for_which_time_a_run_is_in_the_zone_of_its_schedule(tmp_path: Path, ork_cli: OrkCli) -> None:
    schedule = '{cron: "30 6 * * *", timezone: Europe/Prague, enabled: false}'
    (tmp_path / "workflow.yaml").write_text(f"name: daily\nschedule: {schedule}\ntasks: {{a: {{command: echo 1}}}}\n")
    ork_cli("deploy", cwd=tmp_path)
    ork_cli("backfill", "daily", "--from", "2026-07-01", "--to", "2026-07-01", cwd=tmp_path)
    assert "Wed 2026-07-01 06:30 CEST" in ork_cli("runs", cwd=tmp_path).stdout
    assert "for Wed 2026-07-01 06:30 CEST" in ork_cli("show", "@last", cwd=tmp_path).stdout
