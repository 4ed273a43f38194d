"""What runs cost, as a person asks for it; budgets on every store; and what is refused."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import loopback
from tests.postgres import fresh_database
from tests.serving import serving
from tests.snapshots import readable

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]
FLOW = """
name: flow
{head}tasks:
  a: {{command: "sleep 0.2"}}
  b: {{command: "sleep 0.2", depends_on: [a]}}
"""
DEAR = "date: 2026-01-01\nprices: {local.second: 10}\n"


def write(folder: Path, head: str = "", prices: str | None = DEAR, more: str = "") -> None:
    (folder / "workflow.yaml").write_text(FLOW.format(head=head))
    (folder / "ork.yaml").write_text(("" if prices is None else "prices: prices.yaml\n") + more)
    if prices is not None:
        (folder / "prices.yaml").write_text(prices)


@pytest.mark.slow
def test_costs_of_one_and_of_several_runs(tmp_path: Path, ork_cli: OrkCli) -> None:
    write(tmp_path)
    first, second = (json.loads(ork_cli("run", "--json", cwd=tmp_path).stdout)["id"] for _ in range(2))
    one = json.loads(ork_cli("cost", first, "--json", cwd=tmp_path).stdout)
    assert (one["run"], one["estimate"], one["is_complete"], one["prices_file"]) == (first, True, True, "prices.yaml")
    assert [(task["name"], task["attempts"]) for task in one["tasks"]] == [("a", 1), ("b", 1)]
    assert one["usd"] == pytest.approx(10 * sum(task["seconds"] for task in one["tasks"]))
    assert one["usd"] >= 4
    for asked in ((first, second), ("--since", "1d"), ("--since", "2020-01-01", "--workflow", "flow")):
        both = json.loads(ork_cli("cost", *asked, "--json", cwd=tmp_path).stdout)
        assert {each["run"] for each in both["runs"]} == {first, second}
        assert both["usd"] == pytest.approx(sum(each["usd"] for each in both["runs"]))
    assert json.loads(ork_cli("cost", "--since", "2099-01-01", "--json", cwd=tmp_path).stdout)["runs"] == []
    shown = ork_cli("cost", "--since", "1h", "--by", "task", cwd=tmp_path).stdout
    assert "flow/a" in shown
    assert "2 runs: $" in shown
    assert "by estimate" in ork_cli("show", first, "--cost", cwd=tmp_path).stdout
    assert json.loads(ork_cli("show", first, "--cost", "--json", cwd=tmp_path).stdout)["cost"] == one
    assert '"/runs/{run}/cost"' in readable(ork_cli("report", first, "-o", "-", cwd=tmp_path).stdout)


@pytest.mark.slow
def test_a_server_answers_the_same(tmp_path: Path, ork_cli: OrkCli, plain_environment: dict[str, str]) -> None:
    write(tmp_path)
    run = json.loads(ork_cli("run", "--json", cwd=tmp_path).stdout)["id"]
    here = json.loads(ork_cli("cost", run, "--json", cwd=tmp_path).stdout)
    with serving(tmp_path, dict(plain_environment)) as served:
        through = {"ORK_SERVER": served.url, "ORK_TOKEN": served.token}
        assert json.loads(ork_cli("cost", run, "--json", cwd=tmp_path, env=through).stdout) == here
        assert "by estimate" in ork_cli("show", run, "--cost", cwd=tmp_path, env=through).stdout
        request = urllib.request.Request(
            f"{served.url}/api/v1/runs/{run}/cost", headers={"Authorization": f"Bearer {served.token}"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            assert json.loads(response.read()) == here


def test_prices_are_listed_with_their_sources(tmp_path: Path, ork_cli: OrkCli) -> None:
    listed = json.loads(ork_cli("cost", "--prices", "--json", cwd=tmp_path).stdout)
    assert listed["prices"]["cloudrun.vcpu_second"]["usd"] == 0.000018
    assert "to be checked" in ork_cli("cost", "--prices", cwd=tmp_path).stdout
    write(tmp_path)
    listed = json.loads(ork_cli("cost", "--prices", "--json", cwd=tmp_path).stdout)
    assert (listed["date"], listed["prices"]["local.second"]["usd"]) == ("2026-01-01", 10)


@pytest.mark.parametrize(
    ("prices", "message"),
    [
        ("date: 2026-01-01\nprices: {locl.second: 1}\n", "did you mean `local.second`?"),
        ("prices: {local.second: 1}\n", "the price file has no `date`"),
        (None, "cannot read the price file"),
    ],
)
def test_no_scheduler_starts_with_a_wrong_price_file(
    tmp_path: Path, ork_cli: OrkCli, prices: str | None, message: str
) -> None:
    write(tmp_path, "budget: {usd: 1}\n")
    if prices is None:
        (tmp_path / "prices.yaml").unlink()
    else:
        (tmp_path / "prices.yaml").write_text(prices)
    done = ork_cli("run", cwd=tmp_path)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_deploy_notes_a_budget_without_effect(tmp_path: Path, ork_cli: OrkCli) -> None:
    def notes() -> list[str]:
        found: list[str] = json.loads(ork_cli("deploy", "workflow.yaml", "--json", cwd=tmp_path).stdout)["notes"]
        return found

    write(tmp_path, "budget: {usd: 1}\n", prices=None)
    never, quiet = notes()
    assert "flow has a budget that it never exceeds" in never
    assert "flow has a budget and no alert target" in quiet
    write(tmp_path, "budget: {usd: 1}\nalerts: [ops]\n", more="alerts: {ops: https://example.org}\n")
    assert notes() == []
    dear = "date: 2026-01-01\nprices: {local.vcpu_second: 1}\n"
    write(tmp_path, "budget: {usd: 1}\nalerts: [ops]\n", dear, more="alerts: {ops: https://example.org}\n")
    (tmp_path / "workers.yaml").write_text("small: {where: local, cpu: 1}\n")
    text = (tmp_path / "workflow.yaml").read_text().replace('"sleep 0.2"}', '"sleep 0.2", worker: small}', 1)
    (tmp_path / "workflow.yaml").write_text(text)
    assert notes() == ["the budget of flow does not count b: no worker config says its `cpu`"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--since", "yesterday"), "--since yesterday is not a time"),
        (("@last", "--since", "1d"), "name runs, or use --since"),
        (("--workflow", "flow"), "--workflow needs --since"),
    ],
)
def test_wrong_use(tmp_path: Path, ork_cli: OrkCli, args: tuple[str, ...], message: str) -> None:
    write(tmp_path)
    done = ork_cli("cost", *args, cwd=tmp_path)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


@pytest.fixture(params=["sqlite", *(pytest.param(name, marks=pytest.mark.slow) for name in ("postgres", "firestore"))])
def environment(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    with ExitStack() as stack:
        if request.param == "postgres":
            yield {"ORK_STORE": stack.enter_context(fresh_database())}
        elif request.param == "firestore":
            from tests.firestore import HOST, emulator_or_skip

            emulator = emulator_or_skip()
            yield {"ORK_STORE": emulator.new_database(), HOST: emulator.host}
        else:
            yield {}


def test_an_exceeded_budget_alerts_once(tmp_path: Path, ork_cli: OrkCli, environment: dict[str, str]) -> None:
    with loopback() as site:
        site.answers["/hook"] = (200, {})
        more = f"alerts: {{ops: {site.url}/hook}}\noutbound: {{allow: [127.0.0.1]}}\n"
        write(tmp_path, "alerts: [ops]\nbudget: {usd: 1}\n", more=more)
        done = ork_cli("run", "--json", cwd=tmp_path, env=environment)
        assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "success"), done.stderr
        (told,) = [json.loads(request.body) for request in site.asked]
    assert (told["kind"], told["run"]) == ("budget", json.loads(done.stdout)["id"])
    assert told["detail"] == "by estimate it costs more than $1.00; it continues"
    assert "exceeded its budget of $1.00" in ork_cli("why", "@last", cwd=tmp_path, env=environment).stdout
    cost = json.loads(ork_cli("cost", "--json", cwd=tmp_path, env=environment).stdout)
    assert (cost["over_budget_at"] is not None, cost["on_exceed"]) == (True, "alert")
    assert {each["name"] for each in cost["operations"]} == (
        {"firestore.read", "firestore.write", "firestore.delete"} if "firestore" in str(environment) else set()
    )


def test_an_exceeded_budget_cancels_and_a_retry_has_it_again(
    tmp_path: Path, ork_cli: OrkCli, environment: dict[str, str]
) -> None:
    write(tmp_path, "budget: {usd: 3, on_exceed: cancel}\n")
    text = (tmp_path / "workflow.yaml").read_text().replace("sleep 0.2", "sleep 60", 1)
    (tmp_path / "workflow.yaml").write_text(text)

    def shown() -> dict[str, Any]:
        run: dict[str, Any] = json.loads(ork_cli("show", "@last", "--json", cwd=tmp_path, env=environment).stdout)
        return run

    done = ork_cli("run", "--json", cwd=tmp_path, env=environment)
    assert (done.returncode, json.loads(done.stdout)["status"]) == (1, "cancelled"), done.stderr
    assert "cancelled by its budget of $3.00" in shown()["note"]
    assert [len(task["attempts"]) for task in shown()["tasks"]] == [1, 0]
    assert ork_cli("retry", "@last", cwd=tmp_path, env=environment).returncode == 1
    run = shown()
    assert (run["status"], run["round"]) == ("cancelled", 2)
    assert [len(task["attempts"]) for task in run["tasks"]] == [2, 0]


@pytest.mark.slow
def test_ticks_are_woken_when_the_budget_is_used_up(tmp_path: Path, ork_cli: OrkCli) -> None:
    """The first look at a running task would be after ten seconds."""
    write(tmp_path, "budget: {usd: 90, on_exceed: cancel}\n")
    (tmp_path / "workflow.yaml").write_text((tmp_path / "workflow.yaml").read_text().replace("sleep 0.2", "sleep 600"))
    assert ork_cli("deploy", "workflow.yaml", cwd=tmp_path).returncode == 0
    assert ork_cli("trigger", "flow", cwd=tmp_path).returncode == 0
    wake = {"ORK_WAKE_URL": "http://127.0.0.1:1/", "ORK_WAKE_LOOK_SECONDS": "600"}
    tick = json.loads(ork_cli("tick", "--json", cwd=tmp_path, env=wake).stdout)
    try:
        run = json.loads(ork_cli("show", "@last", "--json", cwd=tmp_path).stdout)
        began, woken = (datetime.fromisoformat(text) for text in (run["started_at"], tick["next_wake"]))
        assert (woken - began).total_seconds() == pytest.approx(9, abs=0.9)  # $90 at $10 a second
    finally:
        ork_cli("cancel", "@last", cwd=tmp_path)
        ork_cli("tick", cwd=tmp_path)
