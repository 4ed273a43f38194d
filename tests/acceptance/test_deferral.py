"""Tasks that hand over to jobs outside: the wait costs no process and no slot, and outlives whoever waits."""

from __future__ import annotations

import json
import subprocess
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import serving
from tests.acceptance.waiting import wait_until
from tests.loopback import Loopback, loopback

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

WORKFLOW = """
name: flow
params: {url: str}
tasks:
  wait:
    file: jobs.py
    function: submit
    inputs: {url: {ref: params.url}}
    env: {API_TOKEN: {secret: API_TOKEN}}
"""
JOBS = """
import ork
from pathlib import Path

def submit(url):
    with open("submitted", "a") as ledger:
        ledger.write("x")
    return ork.defer(
        ork.http_job(
            url + "/job",
            headers={"Authorization": {"secret": "API_TOKEN"}},
            every=0.05,
            done={"path": "state", "equals": "finished"},
            failed={"path": "state", "in": ["failed"]},
            output="result.rows",
            cancel={"url": url + "/job", "method": "DELETE"},
        )
    )
"""
RUNNING = (200, {"state": "running"})
FINISHED = (200, {"state": "finished", "result": {"rows": 7}})


@pytest.fixture
def site() -> Iterator[Loopback]:
    with loopback() as site:
        site.answers["/job"] = RUNNING
        yield site


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "workflow.yaml").write_text(WORKFLOW)
    (tmp_path / "jobs.py").write_text(JOBS)
    (tmp_path / ".env").write_text("API_TOKEN=open-sesame\n")
    (tmp_path / "ork.yaml").write_text("outbound: {allow: [127.0.0.1]}\n")
    return tmp_path


@pytest.fixture
def start_ork(project: Path, plain_environment: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def start(*args: str, **environment: str) -> subprocess.Popen[str]:
        started.append(serving.start_ork(project, {**plain_environment, **environment}, *args))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def finished(process: subprocess.Popen[str]) -> tuple[int, dict[str, Any]]:
    out, err = process.communicate(timeout=60)
    assert out.strip(), err
    return process.returncode, json.loads(out)


def task_of(run: dict[str, Any], name: str) -> dict[str, Any]:
    return next(task for task in run["tasks"] if task["name"] == name)


def shown(ork_cli: OrkCli, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ork_cli("show", "@last", "--json", cwd=folder).stdout)
    return found


def is_waiting(ork_cli: OrkCli, folder: Path) -> bool:
    done = ork_cli("show", "@last", "--json", cwd=folder)
    return done.returncode == 0 and "waits_for" in done.stdout


def test_the_answer_of_the_job_is_the_output_and_secrets_are_sent_but_never_kept(
    project: Path, site: Loopback, start_ork: Callable[..., subprocess.Popen[str]]
) -> None:
    process = start_ork("run", "--json", "-p", f"url={site.url}")
    wait_until(lambda: site.count("GET", "/job") >= 2)
    site.answers["/job"] = FINISHED
    code, run = finished(process)
    assert (code, task_of(run, "wait")["output"]) == (0, 7)
    assert (project / "submitted").read_text() == "x"
    assert {asked.headers["Authorization"] for asked in site.asked} == {"open-sesame"}
    kept = [path for path in (project / ".ork").rglob("*") if path.is_file() and b"open-sesame" in path.read_bytes()]
    assert kept == []


def test_a_killed_scheduler_loses_nothing_and_submits_nothing_twice(
    project: Path, site: Loopback, ork_cli: OrkCli, start_ork: Callable[..., subprocess.Popen[str]]
) -> None:
    first = start_ork("run", "--json", "-p", f"url={site.url}")
    wait_until(lambda: is_waiting(ork_cli, project))
    first.kill()
    first.wait()
    site.answers["/job"] = FINISHED
    second = start_ork("scheduler")
    wait_until(lambda: shown(ork_cli, project)["status"] == "success")
    second.terminate()
    assert task_of(shown(ork_cli, project), "wait")["output"] == 7
    assert (project / "submitted").read_text() == "x"


def test_a_tick_asks_once_and_leaves(project: Path, site: Loopback, ork_cli: OrkCli) -> None:
    assert ork_cli("deploy", "workflow.yaml", cwd=project).returncode == 0
    ork_cli("trigger", "flow", "-p", f"url={site.url}", cwd=project)
    wait_until(lambda: ork_cli("tick", cwd=project).returncode == 0 and is_waiting(ork_cli, project))
    asked = site.count("GET", "/job")
    ork_cli("tick", cwd=project)
    assert site.count("GET", "/job") > asked
    site.answers["/job"] = FINISHED
    ork_cli("tick", cwd=project)
    assert shown(ork_cli, project)["status"] == "success"


def test_cancelling_tells_the_job(
    project: Path, site: Loopback, ork_cli: OrkCli, start_ork: Callable[..., subprocess.Popen[str]]
) -> None:
    process = start_ork("run", "--json", "-p", f"url={site.url}")
    wait_until(lambda: is_waiting(ork_cli, project))
    assert ork_cli("cancel", "@last", cwd=project).returncode == 0
    code, run = finished(process)
    assert (code, run["status"]) == (1, "cancelled")
    assert site.count("DELETE", "/job") == 1


def test_a_failed_job_fails_the_attempt_and_the_retry_submits_anew(
    project: Path, site: Loopback, start_ork: Callable[..., subprocess.Popen[str]]
) -> None:
    (project / "workflow.yaml").write_text(WORKFLOW + "    retries: 1\n    retry_delay: 0\n")
    site.answers["/job"] = [RUNNING, (200, {"state": "failed"}), RUNNING, FINISHED]
    code, run = finished(start_ork("run", "--json", "-p", f"url={site.url}"))
    assert code == 0
    assert [attempt["status"] for attempt in task_of(run, "wait")["attempts"]] == ["failed", "success"]
    assert (project / "submitted").read_text() == "xx"


def test_a_status_page_that_is_down_for_a_while_is_asked_again(
    project: Path, site: Loopback, ork_cli: OrkCli, start_ork: Callable[..., subprocess.Popen[str]]
) -> None:
    site.answers["/job"] = [(503, {}), (503, {}), RUNNING, FINISHED]
    code, _ = finished(start_ork("run", "--json", "-p", f"url={site.url}"))
    assert code == 0
    assert "answered 503; asking again" in ork_cli("logs", "@last", "wait", cwd=project).stdout


def test_the_timeout_covers_the_wait_and_tells_the_job(
    project: Path, site: Loopback, start_ork: Callable[..., subprocess.Popen[str]]
) -> None:
    (project / "workflow.yaml").write_text(WORKFLOW + "    timeout: 1s\n")
    code, run = finished(start_ork("run", "--json", "-p", f"url={site.url}"))
    assert code == 1
    assert [attempt["status"] for attempt in task_of(run, "wait")["attempts"]] == ["timed_out"]
    assert site.count("DELETE", "/job") == 1


def test_waiting_takes_no_slot(project: Path, site: Loopback, start_ork: Callable[..., subprocess.Popen[str]]) -> None:
    (project / "workflow.yaml").write_text(WORKFLOW + "  other: {command: touch other-ran}\n")
    process = start_ork("run", "--json", "-p", f"url={site.url}", ORK_MAX_WORKERS="1")
    wait_until(lambda: (project / "other-ran").exists() and site.count("GET", "/job") > 0)
    site.answers["/job"] = FINISHED
    assert finished(process)[0] == 0


def test_all_jobs_must_finish_and_one_that_fails_stops_the_others(project: Path, ork_cli: OrkCli) -> None:
    (project / "jobs.py").write_text(
        "import ork\nfrom pathlib import Path\n"
        "def submit(url):\n"
        "    return ork.defer(ork.call_job('jobs:never', {'name': 'a'}, every=0.05, cancel='jobs:stopped'),\n"
        "                     ork.call_job('jobs:broken', every=0.05))\n"
        "def never(name):\n    Path('asked').touch()\n"
        "def broken():\n"
        "    if Path('asked').exists():\n        raise ValueError('the job exploded')\n"
        "def stopped(name):\n    Path('stopped-' + name).touch()\n"
    )
    done = ork_cli("run", "--json", "-p", "url=none", cwd=project)
    wait = task_of(json.loads(done.stdout), "wait")
    assert (done.returncode, wait["status"]) == (1, "failed")
    assert wait["error"] == "ValueError: the job exploded"
    assert (project / "stopped-a").exists()


def test_a_function_is_asked_in_the_environment_of_its_task(project: Path, ork_cli: OrkCli) -> None:
    venv.create(project / "own", symlinks=True)
    (packages,) = (project / "own/lib").glob("python*/site-packages")
    (packages / "only_there.py").write_text("ANSWER = 42\n")
    text = WORKFLOW.replace("function: submit", "function: submit\n    environment: own")
    (project / "workflow.yaml").write_text(text)
    (project / "jobs.py").write_text(
        "def submit(url):\n    import ork, only_there\n    return ork.defer(ork.call_job('jobs:ask', every=0.05))\n"
        "def ask():\n    import sys, only_there\n    return [only_there.ANSWER, sys.prefix.endswith('/own')]\n"
    )
    done = ork_cli("run", "--json", "-p", "url=none", cwd=project)
    wait = task_of(json.loads(done.stdout), "wait")
    assert (wait["status"], wait["output"]) == ("success", [42, True]), wait["error"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("return ork.defer()", "nothing to wait for"),
        ("return ork.defer({'http': 'ftp://x'})", "not an http or https URL"),
        ("return ork.defer({'call': 'no function'})", "a function named as `module:function`"),
        ("return ork.defer({'call': 'jobs:f', 'evry': 1})", "a job has no key `evry`"),
    ],
)
def test_a_job_that_makes_no_sense_fails_where_it_is_made(
    project: Path, ork_cli: OrkCli, code: str, message: str
) -> None:
    (project / "jobs.py").write_text(f"import ork\ndef submit(url):\n    {code}\n")
    done = ork_cli("run", "--json", "-p", "url=none", cwd=project)
    assert done.returncode == 1
    assert message in task_of(json.loads(done.stdout), "wait")["error"]
