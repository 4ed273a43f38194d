"""What people do with images: a project from `ork init --docker`, and workflows that are posted and name plain images."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.waiting import wait_until
from tests.docker import Daemon, busybox, daemon_or_skip
from tests.integration.location_images import location_image, ork_base
from tests.loopback import loopback
from tests.serving import serving

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]
# The engine of the tests has no network for containers but none at all.
WORKERS = "default: {where: docker, network: none}\n"
FAN = {
    "fan/flow.yaml": """
name: fan
tasks:
  some: {file: steps.py, function: some}
  each: {file: steps.py, function: each, foreach: some, retries: 1}
  all: {command: sh ./all.sh, depends_on: [each]}
""",
    "fan/steps.py": """
def some():
    return [1, 2, 3]


def each(item, ctx):
    if item == 2 and ctx.attempt == 1:
        raise ValueError("not yet")
    return 2 * item
""",
    "fan/all.sh": 'read numbers; echo "{\\"folder\\": \\"$(pwd)\\", \\"sum\\": $numbers}"\n',
}
POSTED = {
    "name": "posted",
    "tasks": {
        "make": {
            "image": "plain",
            "command": ["sh", "-c", "echo '{\"rows\": 12}' > /out/made.json"],
            "output": {"from_file": "/out/made.json"},
        },
        "count": {
            "image": "plain",
            "command": ["sh", "-c", "cat /in/data.json > /out/seen.json"],
            "depends_on": ["make"],
            "input": {"to_file": "/in/data.json"},
            "output": {"from_file": "/out/seen.json"},
        },
    },
}


@pytest.fixture
def daemon() -> Daemon:
    return daemon_or_skip()


def test_a_new_docker_project_is_built_found_and_run(
    tmp_path: Path, plain_environment: dict[str, str], ork_cli: OrkCli, daemon: Daemon
) -> None:
    environment = {**plain_environment, "DOCKER_HOST": daemon.url}

    def ork(*args: str, cwd: Path = tmp_path / "hello") -> subprocess.CompletedProcess[str]:
        return ork_cli(*args, cwd=cwd, env=environment)

    made = ork("init", "--docker", "hello", cwd=tmp_path)
    assert made.returncode == 0
    assert "docker build -t hello . && ork locations refresh hello && ork run hello" in made.stdout
    assert ork("run", "workflow.yaml").returncode == 0  # the script, without any image
    (tmp_path / "hello/workers.yaml").write_text(WORKERS)
    base = ork_base(daemon)
    daemon.docker(
        "build", "-q", "--network", "none", "--build-arg", f"PYTHON={base}", "-t", "hello", str(tmp_path / "hello")
    )
    parsed = json.loads(daemon.docker("run", "--rm", "--network", "none", "hello", "ork-parse"))
    assert [workflow["name"] for workflow in parsed["workflows"]] == ["hello"]
    refreshed = ork("locations", "refresh", "hello")
    assert refreshed.returncode == 0, refreshed.stdout + refreshed.stderr
    ran = ork("run", "hello", "--json")
    assert ran.returncode == 0, ran.stderr
    tasks = json.loads(ran.stdout)["tasks"]
    assert [(task["executor"], task["status"]) for task in tasks] == [("container", "success")] * 3
    assert tasks[2]["output"] == {"path": "out/active.json"}
    assert ork("deploy", "workflow.yaml").returncode == 4
    debugged = ork("debug", "@last", "extract")
    assert (debugged.returncode, "cannot run outside of it" in debugged.stderr) == (4, True)


def test_custom_executors_commands_and_fan_outs_of_an_image_run_in_it(
    tmp_path: Path, plain_environment: dict[str, str], ork_cli: OrkCli, daemon: Daemon, tree: Path
) -> None:
    example = tree / "examples/custom_executor"
    names = ("workflow.yaml", "ork.yaml", "executors.py", "configs/banner.yaml")
    location_image(daemon, "mixed", {**{name: (example / name).read_text() for name in names}, **FAN})
    # What was built here is in no registry, whatever the config says about asking one.
    (tmp_path / "workers.yaml").write_text("default: {where: docker, network: none, pull: always}\n")
    (tmp_path / "locations.yaml").write_text("- {name: mixed, image: mixed, pull: never}\n")

    def ork(*args: str) -> subprocess.CompletedProcess[str]:
        return ork_cli(*args, cwd=tmp_path, env={**plain_environment, "DOCKER_HOST": daemon.url})

    assert ork("locations", "refresh", "mixed").returncode == 0

    def outputs(*args: str) -> dict[str, object]:
        return {task["name"]: task["output"] for task in json.loads(ork("run", *args, "--json").stdout)["tasks"]}

    assert outputs("custom_executor", "-p", "word=ahoy")["title"] == {"text": "AHOY AHOY"}
    assert outputs("fan")["all"] == {"folder": "/app/fan", "sum": [2, 4, 6]}


def test_a_workflow_that_is_posted_may_name_plain_images_and_needs_no_location(
    tmp_path: Path, plain_environment: dict[str, str], daemon: Daemon
) -> None:
    busybox(daemon, "plain")
    (tmp_path / "workers.yaml").write_text(WORKERS)
    with serving(tmp_path, {**plain_environment, "DOCKER_HOST": daemon.url}) as served:
        assert served.ask("POST", "/workflows", POSTED)[0] == 201
        status, run = served.ask("POST", "/workflows/posted/runs", {})
        assert status == 201

        def state() -> str:
            return str(served.ask("GET", f"/runs/{run['id']}")[1]["status"])

        wait_until(lambda: state() in ("success", "failed"))
        assert state() == "success"
        assert served.ask("GET", f"/runs/{run['id']}/tasks/count/0/output")[1] == {"rows": 12}
        ours = f"ork.{run['id']}."
        wait_until(lambda: not any(name.startswith(ours) for name in daemon.containers()))


THIEF = {
    "ork.yaml": "secrets: {PGPASSWORD: {from: env}, MINE: {from: env}}\noutbound: {allow: [0.0.0.0/0]}\n",
    "flow.yaml": """
name: thief
params: {url: str}
tasks:
  named: {command: env, env: {X: {secret: PGPASSWORD}}}
  sent: {file: steps.py, function: send, env: {MINE: {secret: MINE}}, inputs: {url: {ref: params.url}, name: PGPASSWORD}}
  own: {file: steps.py, function: send, env: {MINE: {secret: MINE}}, inputs: {url: {ref: params.url}, name: MINE}}
  metadata: {file: steps.py, function: send, inputs: {url: "http://169.254.169.254/", name: null}}
""",
    "steps.py": """
import os
import ork


def send(url, name):
    print("mine is", os.environ.get("MINE"))
    return ork.defer(ork.http_job(url, headers={"X": {"secret": name}} if name else None, every=0.1))
""",
}


def test_a_container_without_network_gets_no_more_through_the_scheduler_than_it_was_given(
    tmp_path: Path, plain_environment: dict[str, str], ork_cli: OrkCli, daemon: Daemon
) -> None:
    """What an image declares for itself counts for nothing: the installation's ork.yaml decides."""
    location_image(daemon, "thief", THIEF)
    (tmp_path / "workers.yaml").write_text(WORKERS)
    (tmp_path / "locations.yaml").write_text("- {name: thief, image: thief, pull: never}\n")
    (tmp_path / "ork.yaml").write_text("secrets: {MINE: {from: env}}\noutbound: {allow: [127.0.0.1]}\n")
    secrets = {"PGPASSWORD": "hush-hush", "MINE": "my-own-word"}

    def ork(*args: str) -> subprocess.CompletedProcess[str]:
        return ork_cli(*args, cwd=tmp_path, env={**plain_environment, "DOCKER_HOST": daemon.url, **secrets})

    refreshed = ork("locations", "refresh", "thief")
    assert refreshed.returncode == 0, refreshed.stderr
    with loopback() as site:
        site.answers["/job"] = (200, {"fine": True})
        done = ork("run", "thief", "--json", "-p", f"url={site.url}/job")
        assert {asked.headers["X"] for asked in site.asked} == {"my-own-word"}
    run = json.loads(done.stdout)
    errors = {task["name"]: task["error"] for task in run["tasks"]}
    assert "declares no secret `PGPASSWORD`" in errors["named"]
    assert "does not declare secret `PGPASSWORD`" in errors["sent"]
    assert "169.254.169.254 is not a public address" in errors["metadata"]
    assert errors["own"] is None
    assert ork("logs", "@last", "own").stdout == "mine is ***\n"
    assert "hush-hush" not in done.stdout
