"""Secrets: a workflow gets what the project gives it and nothing else, and the scheduler is no way into its network."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import loopback
from tests.postgres import fresh_database

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

HAND_OVER = """
import ork

def attack(url, header=None):
    return ork.defer(ork.http_job(url, headers=header, every=0.05))
"""


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / name.replace("__", "/").replace("_dot_", ".")).write_text(text)


def last_error(ork_cli: OrkCli, folder: Path, task: str = "steal") -> str:
    run = json.loads(ork_cli("show", "@last", "--json", cwd=folder).stdout)
    found: Any = next(each for each in run["tasks"] if each["name"] == task)
    return str(found["error"])


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    if request.param == "sqlite":
        yield {}
        return
    with fresh_database() as url:
        yield {"ORK_STORE": url}


@pytest.mark.parametrize("name", ["PGPASSWORD", "ORK_STORE"])
def test_a_variable_of_the_scheduler_is_no_secret(tmp_path: Path, ork_cli: OrkCli, name: str) -> None:
    """`{secret: PGPASSWORD}` in plain YAML took any variable of the scheduler."""
    write(
        tmp_path, workflow_dot_yaml=f"name: f\ntasks:\n  steal:\n    command: env\n    env: {{X: {{secret: {name}}}}}\n"
    )
    env = {"PGPASSWORD": "hush-hush"}
    checked = ork_cli("validate", cwd=tmp_path, env=env)
    assert checked.returncode == 2
    assert "ORK211" in checked.stderr
    assert "workflow.yaml:5:14" in checked.stderr
    if name == "PGPASSWORD":
        assert "secrets: {PGPASSWORD: {from: env}}" in checked.stderr
    assert ork_cli("run", cwd=tmp_path, env=env).returncode == 2
    assert ork_cli("deploy", "workflow.yaml", cwd=tmp_path, env=env).returncode == 2


def test_a_declared_one_reaches_its_workflows_and_no_other(tmp_path: Path, ork_cli: OrkCli) -> None:
    task = 'command: ["sh", "-c", "test $X = hush-hush"]\n    env: {X: {secret: KEY}}\n'
    write(
        tmp_path,
        ork_dot_yaml="secrets: {KEY: {from: env, variable: PGPASSWORD, workflows: [good]}}\n",
        good_dot_yaml=f"name: good\ntasks:\n  use:\n    {task}",
        bad_dot_yaml=f"name: bad\ntasks:\n  use:\n    {task}",
    )
    env = {"PGPASSWORD": "hush-hush"}
    done = ork_cli("run", "good.yaml", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    refused = ork_cli("validate", "bad.yaml", cwd=tmp_path, env=env)
    assert refused.returncode == 2
    assert "does not give secret `KEY` to workflow `bad`" in refused.stderr


def test_a_version_that_was_deployed_before_is_refused_when_it_is_launched(tmp_path: Path, ork_cli: OrkCli) -> None:
    write(
        tmp_path,
        ork_dot_yaml="secrets: {KEY: {from: env}}\n",
        f_dot_yaml="name: f\ntasks:\n  steal: {command: env, env: {X: {secret: KEY}}}\n",
    )
    assert ork_cli("deploy", "f.yaml", cwd=tmp_path, env={"KEY": "hush-hush"}).returncode == 0
    (tmp_path / "ork.yaml").write_text("")
    done = ork_cli("run", "f", cwd=tmp_path, env={"KEY": "hush-hush"})
    assert done.returncode == 1
    error = last_error(ork_cli, tmp_path)
    assert "declares no secret `KEY`" in error
    assert "secrets: {KEY: {from: env}}" in error


@pytest.mark.parametrize("name", ["ORK_STORE", "PGPASSWORD", "OTHER"])
def test_a_task_that_hands_over_gets_no_secret_sent_that_it_does_not_have(
    tmp_path: Path, ork_cli: OrkCli, name: str
) -> None:
    """`ork.defer(ork.http_job(url, headers={"X": {"secret": "ORK_STORE"}}))` had the scheduler send any secret."""
    with loopback() as site:
        write(
            tmp_path,
            ork_dot_yaml="outbound: {allow: [127.0.0.1]}\nsecrets: {PGPASSWORD: {from: env}}\n",
            _dot_env="OTHER=hush-hush\nMINE=x\n",
            jobs_dot_py=HAND_OVER,
            workflow_dot_yaml=(
                "name: f\ntasks:\n  steal:\n    file: jobs.py\n    function: attack\n    env: {MINE: {secret: MINE}}\n"
                f"    inputs: {{url: {site.url}/, header: {{const: {{X: {{secret: {name}}}}}}}}}\n"
            ),
        )
        done = ork_cli("run", cwd=tmp_path, env={"PGPASSWORD": "hush-hush", "ORK_STORE": f"sqlite:{tmp_path}/hush.db"})
        assert done.returncode == 1, done.stdout
        assert site.asked == []
    error = last_error(
        lambda *args, **more: ork_cli(*args, env={"ORK_STORE": f"sqlite:{tmp_path}/hush.db"}, **more), tmp_path
    )
    assert f"the task does not declare secret `{name}`" in error
    assert ("add `env:" in error) != name.startswith("ORK_")
    assert ("never given to tasks" in error) == name.startswith("ORK_")


def test_a_task_that_hands_over_does_not_reach_the_schedulers_network(
    tmp_path: Path, ork_cli: OrkCli, store: dict[str, str]
) -> None:
    with loopback() as site:
        site.answers["/inside"] = (200, {"credentials": "of the machine"})
        write(
            tmp_path,
            jobs_dot_py=HAND_OVER,
            workflow_dot_yaml=(
                "name: f\ntasks:\n  steal:\n    file: jobs.py\n    function: attack\n"
                f"    inputs: {{url: {site.url}/inside}}\n"
            ),
        )
        assert ork_cli("run", cwd=tmp_path, env=store).returncode == 1
        assert site.asked == []
        error = last_error(lambda *args, **more: ork_cli(*args, env=store, **more), tmp_path)
        line = f'outbound: {{allow: ["{site.url.removeprefix("http://")}"]}}'
        assert line in error
        (tmp_path / "ork.yaml").write_text(line + "\n")
        done = ork_cli("run", cwd=tmp_path, env=store)
        assert done.returncode == 0, done.stderr


def test_a_command_gives_the_value(tmp_path: Path, ork_cli: OrkCli) -> None:
    write(
        tmp_path,
        ork_dot_yaml="secrets: {KEY: {from: command, argv: [sh, -c, 'echo x >> ran; echo hush-hush']}}\n",
        workflow_dot_yaml=(
            'name: f\ntasks:\n  use: {command: ["sh", "-c", "test $X = hush-hush"], env: {X: {secret: KEY}}}\n'
            '  too: {command: ["sh", "-c", "test $X = hush-hush"], env: {X: {secret: KEY}}, depends_on: [use]}\n'
        ),
    )
    done = ork_cli("run", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "ran").read_text() == "x\n"
