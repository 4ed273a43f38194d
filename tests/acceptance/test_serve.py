"""`ork serve` as a team uses it: real processes, HTTP from outside, and the command line through the server."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import ssl
import stat
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.acceptance.waiting import wait_until
from tests.serving import Served, start_ork

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = pytest.mark.slow

HELD = "[sh, -c, 'echo begun >> ledger; while [ ! -e go ]; do sleep 0.05; done; echo 7']"
WORKFLOW = f"name: held\ntasks:\n  a: {{command: {HELD}}}\n  b: {{command: echo done, depends_on: [a]}}\n"
QUICK = "name: quick\nparams: {n: {type: int, default: 2}}\ntasks:\n  a: {command: [sh, -c, 'echo words; echo 7']}\n"


Serve = Callable[..., Served]


@pytest.fixture
def start(tmp_path: Path, plain_environment: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def begin(*args: str) -> subprocess.Popen[str]:
        started.append(start_ork(tmp_path, plain_environment, *args))
        return started[-1]

    yield begin
    (tmp_path / "go").touch()
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def serve(tmp_path: Path, start: Callable[..., subprocess.Popen[str]]) -> Serve:
    (tmp_path / "workflow.yaml").write_text(WORKFLOW)
    (tmp_path / "quick.yaml").write_text(QUICK)
    return lambda *args: Served(start("serve", "--port", "0", *args), tmp_path)


@pytest.fixture
def ork(tmp_path: Path, ork_cli: OrkCli) -> OrkCli:
    def call(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return ork_cli(*args, cwd=tmp_path, env=env)

    return call


def test_ready_means_that_it_answers_and_the_token_is_for_its_user_alone(tmp_path: Path, serve: Serve) -> None:
    served = serve()
    assert stat.S_IMODE((tmp_path / ".ork/token").stat().st_mode) == 0o600
    assert served.ask("GET", "/readyz", Authorization="") == (200, {"status": "ready"})
    assert served.ask("GET", "/runs", Authorization="")[0] == 401
    assert served.ask("GET", "/runs", Host="evil.example")[0] == 421
    assert served.ask("GET", "/runs")[1]["runs"] == []
    assert "stopped" in served.stop()
    again = serve()
    assert again.token == served.token
    again.stop()


def test_everything_a_person_does_goes_through_the_server(tmp_path: Path, serve: Serve, ork: OrkCli) -> None:
    served = serve()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    remote = {"ORK_SERVER": served.url, "ORK_TOKEN": served.token}

    def far(*args: str) -> subprocess.CompletedProcess[str]:
        return ork(*args, **remote)

    assert far("deploy", "quick.yaml").returncode == 0
    done = far("trigger", "quick", "-p", "n=5", "--wait")
    assert done.returncode == 0, done.stderr
    run = done.stdout.strip()
    near, distant = (json.loads(call("show", run, "--json").stdout) for call in (ork, far))
    assert distant == near
    assert (distant["status"], distant["params"]) == ("success", {"n": 5})
    assert far("logs", run).stdout == "words\n7\n"
    assert far("logs", run, "-f").stdout == "words\n7\n"
    assert far("output", run, "a").stdout == "7\n"
    assert far("watch", run).returncode == 0
    assert "succeeded" in far("why", run).stdout
    assert [far(*words).stdout for words in (("runs", "--json"), ("workflows", "--json"))] == [
        ork(*words).stdout for words in (("runs", "--json"), ("workflows", "--json"))
    ]
    assert far("cancel", run).returncode == 4
    assert far("show", "zzzz").returncode == 3
    assert far("workflow", "disable", "quick").returncode == 0
    assert json.loads(ork("workflows", "--json").stdout)["workflows"][0]["enabled"] is False
    (tmp_path / "bad.yaml").write_text("name: bad\ntasks:\n  a: {depends_on: [x]}\n")
    assert far("deploy", "bad.yaml").returncode == 2
    whole = far("run", "quick.yaml")
    assert whole.returncode == 0, whole.stderr
    who = {entry["by"] for entry in json.loads(far("audit", "--json").stdout)["entries"]}
    assert who == {"first"}
    served.stop()


def test_commands_through_the_server_reach_the_scheduler(tmp_path: Path, serve: Serve, ork: OrkCli) -> None:
    served = serve()
    far = ["--server", served.url]
    ork(*far, "deploy", "workflow.yaml")
    run = ork(*far, "trigger", "held").stdout.strip()
    wait_until(lambda: (tmp_path / "ledger").exists())
    assert ork(*far, "pause", run).returncode == 0
    wait_until(lambda: served.ask("GET", f"/runs/{run}")[1]["status"] == "paused")
    assert ork(*far, "resume", run).returncode == 0
    wait_until(lambda: served.ask("GET", f"/runs/{run}")[1]["status"] == "running")
    assert ork(*far, "cancel", run).returncode == 0
    assert ork(*far, "watch", run).returncode == 1
    assert served.ask("GET", f"/runs/{run}")[1]["status"] == "cancelled"
    (tmp_path / "go").touch()
    assert ork(*far, "retry", run).returncode == 0
    assert ork(*far, "watch", run).returncode == 0
    served.stop()


def test_approvals_are_listed_and_given_through_the_server(tmp_path: Path, serve: Serve, ork: OrkCli) -> None:
    (tmp_path / "asking.yaml").write_text("name: asking\ntasks:\n  b: {command: 'true'}\n  ok: {approval: Sure?}\n")
    served = serve()
    far = ["--server", served.url]
    ork(*far, "deploy", "asking.yaml")
    run = ork(*far, "trigger", "asking").stdout.strip()

    def waiting() -> list[str]:
        return [each["task"] for each in json.loads(ork(*far, "approvals", "--json").stdout)["approvals"]]

    wait_until(lambda: waiting() == ["ok"])
    assert ork(*far, "approve", run, "--detach").returncode == 0
    wait_until(lambda: waiting() == [])
    served.stop()


def test_roles_and_errors_are_told_in_the_words_of_the_command_line(serve: Serve, ork: OrkCli) -> None:
    served = serve()
    ork("deploy", "quick.yaml")
    viewer = ork("token", "create", "--name", "eve").stdout.strip()
    assert viewer.startswith("ork_")
    remote = {"ORK_SERVER": served.url, "ORK_TOKEN": viewer}
    assert ork("workflows", **remote).returncode == 0
    refused = ork("trigger", "quick", **remote)
    assert (refused.returncode, "needs the role operator" in refused.stderr) == (4, True)
    (entry,) = [each for each in json.loads(ork("token", "list", "--json").stdout)["tokens"] if each["name"] == "eve"]
    assert ork("token", "revoke", entry["id"]).returncode == 0
    assert ork("workflows", **remote).returncode == 4
    served.stop()
    gone = ork("workflows", **remote)
    assert (gone.returncode, "cannot reach" in gone.stderr) == (1, True)


def test_twenty_triggers_at_once_from_outside_with_one_key_make_one_run(serve: Serve, ork: OrkCli) -> None:
    served = serve("--no-scheduler")
    ork("deploy", "quick.yaml")
    with ThreadPoolExecutor(20) as pool:
        key = {"Idempotency-Key": "one"}
        asked = [pool.submit(served.ask, "POST", "/workflows/quick/runs", {}, **key) for _ in range(20)]
        answers = [each.result() for each in asked]
    assert {answer["id"] for _, answer in answers} == {answers[0][1]["id"]}
    assert sorted(status for status, _ in answers) == [200] * 19 + [201]
    served.stop()


def test_a_task_outlives_the_server_and_the_next_one_adopts_it(tmp_path: Path, serve: Serve, ork: OrkCli) -> None:
    first = serve()
    ork("deploy", "workflow.yaml")
    run = ork("trigger", "held").stdout.strip()
    wait_until(lambda: (tmp_path / "ledger").exists())
    first.stop()
    second, third = serve(), serve()
    (tmp_path / "go").touch()
    assert ork("watch", run).returncode == 0
    assert (tmp_path / "ledger").read_text() == "begun\n"
    assert len(third.ask("GET", "/schedulers")[1]["schedulers"]) == 2
    second.stop()
    third.stop()


def test_draining_begins_nothing_new_and_sees_what_runs_to_its_end(tmp_path: Path, serve: Serve, ork: OrkCli) -> None:
    served = serve("--drain")
    ork("deploy", "workflow.yaml")
    run = ork("trigger", "held").stdout.strip()
    wait_until(lambda: (tmp_path / "ledger").exists())
    served.process.send_signal(signal.SIGTERM)
    waiting = ork("trigger", "held").stdout.strip()
    assert served.ask("GET", "/healthz")[0] == 200
    (tmp_path / "go").touch()
    _, said = served.process.communicate(timeout=60)
    assert served.process.returncode == 0, said
    tasks = json.loads(ork("show", run, "--json").stdout)["tasks"]
    assert [task["status"] for task in tasks] == ["success", "pending"]
    assert json.loads(ork("show", waiting, "--json").stdout)["status"] == "pending"


def test_a_workflow_runs_with_nothing_but_ticks_over_http(serve: Serve, ork: OrkCli) -> None:
    served = serve("--no-scheduler")
    ork("deploy", "quick.yaml")
    run = served.ask("POST", "/workflows/quick/runs")[1]["id"]

    def is_over() -> bool:
        assert served.ask("POST", "/tick")[0] == 200
        return bool(served.ask("GET", f"/runs/{run}")[1]["status"] == "success")

    wait_until(is_over)
    second = served.ask("POST", "/workflows/quick/runs")[1]["id"]

    def is_over_by_waking() -> bool:
        assert served.ask("POST", "/wake")[0] == 202
        return bool(served.ask("GET", f"/runs/{second}")[1]["status"] == "success")

    wait_until(is_over_by_waking)
    metrics = read_metrics(served)
    assert 'ork_ended_total{status="success",what="run"} 2.0' in metrics
    assert any(line.startswith('ork_seconds_count{work="commit"}') for line in metrics)
    assert served.stop().count("run ended") == 2


def test_log_lines_are_json_with_the_names_of_run_task_and_attempt(serve: Serve, ork: OrkCli) -> None:
    served = serve("--log-format", "json")
    ork("deploy", "quick.yaml")
    run = ork("trigger", "quick", "--wait").stdout.strip()
    lines = [json.loads(line) for line in served.stop().splitlines()]
    (ended,) = [line for line in lines if line["event"] == "attempt_ended"]
    named = {name: ended[name] for name in ("run", "workflow", "task", "index", "attempt", "status", "error")}
    assert named == {
        "run": run,
        "workflow": "quick",
        "task": "a",
        "index": None,
        "attempt": 1,
        "status": "success",
        "error": None,
    }
    (over,) = [line for line in lines if line["event"] == "run_finished"]
    assert over["created_at"] <= over["started_at"] <= ended["dispatched_at"] <= ended["started_at"]
    assert ended["finished_at"] <= over["finished_at"]
    assert over["finished_at"].endswith("Z")


def read_metrics(served: Served) -> list[str]:
    request = urllib.request.Request(f"{served.url}/metrics", headers={"Authorization": f"Bearer {served.token}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        text: str = answer.read().decode()
    return text.splitlines()


def test_metrics_count_what_ended_and_how_long_each_part_of_a_step_took(serve: Serve, ork: OrkCli) -> None:
    served = serve()
    ork("deploy", "quick.yaml")
    ork("trigger", "quick", "--wait")
    lines = read_metrics(served)
    assert 'ork_ended_total{status="success",what="attempt"} 1.0' in lines
    assert 'ork_ended_total{status="success",what="run"} 1.0' in lines
    assert {'ork_runs{status="running"} 0.0', "ork_schedulers 1.0"} <= set(lines)
    counted = dict(line.rsplit(" ", 1) for line in lines if line.startswith("ork_seconds_count"))
    parts = [f'ork_seconds_count{{work="{part}"}}' for part in ("fire", "lease", "read", "observe", "commit", "act")]
    assert all(float(counted[part]) > 0 for part in [*parts, 'ork_seconds_count{work="step"}'])
    served.stop()


def test_a_bind_that_others_can_reach_is_refused_without_token_and_names(tmp_path: Path, ork: OrkCli) -> None:
    plain = ork("serve", "--host", "0.0.0.0", "--port", "0")
    assert (plain.returncode, "no token" in plain.stderr) == (4, True)
    ork("token", "create")
    nameless = ork("serve", "--host", "0.0.0.0", "--port", "0")
    assert (nameless.returncode, "--allowed-host" in nameless.stderr) == (4, True)
    assert not (tmp_path / ".ork/token").exists()


def test_over_tls_the_same_answers(tmp_path: Path, serve: Serve) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here to make a certificate")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    served = serve("--tls-cert", "cert.pem", "--tls-key", "key.pem")
    assert served.url.startswith("https://")
    host, _, port = served.url.partition("://")[2].rpartition(":")
    context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=30)
    connection.request("GET", "/api/v1/runs", headers={"Authorization": f"Bearer {served.token}"})
    answer = connection.getresponse()
    assert (answer.status, "max-age" in answer.headers["strict-transport-security"]) == (200, True)
    connection.close()
    served.stop()
    assert os.path.exists(tmp_path / ".ork/ork.db")
