"""dbt commands of a project are performed by one dbt that stays, each in a process of its own.

The dbt here is a small program with dbt's documented shape (a script, `dbtRunner`, `parse`), which keeps a ledger. The real one is
in `tests/acceptance/test_dbt.py`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

OrkCli = Callable[..., CompletedProcess[str]]

FAKE = """
import os, sys, threading, time

def note(*words):
    with open(os.environ["LEDGER"], "a") as file:
        file.write(" ".join(map(str, words)) + "\\n")

note("start", os.getpid())


class DbtUsageException(Exception):
    pass


class Result:
    def __init__(self, success, result=None, exception=None):
        self.success, self.result, self.exception = success, result, exception


class Manifest:
    def __init__(self, models):
        self.models, self.env_vars = models, {}


def parsed(project):
    note("parse", os.environ.get("DAY", "-"))
    folder = project + "/models"
    models = {name[:-4]: open(f"{folder}/{name}").read().split() for name in sorted(os.listdir(folder))}
    return Manifest(models)


class dbtRunner:
    def __init__(self, manifest=None):
        self.manifest = manifest

    def invoke(self, words):
        if "--no-such-option" in words:
            return Result(False, exception=DbtUsageException("no such option"))
        project = words[words.index("--project-dir") + 1]
        manifest = self.manifest or parsed(project)
        if "parse" in words:
            if os.path.exists("thread"):
                threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            return Result(True, manifest)
        name = words[words.index("--select") + 1].rpartition(".")[2]
        return self.build(name, project, *manifest.models[name])

    def build(self, name, project, what, *rest):
        print("building", name, os.environ.get("DAY", ""), os.environ["ORK_TASK_NAME"])
        note("build", name, os.getpid())
        try:
            if what == "sleep" or (what == "sleep-once" and not os.path.exists("slept")):
                open("slept", "w").close()
                time.sleep(600)
            elif what == "kill" and not os.path.exists("killed"):
                open("killed", "w").close()
                os.kill(os.getppid(), 9)
                time.sleep(600)
            elif what == "edit":
                open(f"{project}/models/{rest[0]}.sql", "w").write("fine edited by another")
            elif what == "crash":
                os.abort()
        except KeyboardInterrupt as error:
            note("interrupted", name)
            return Result(False, exception=error)
        return Result(what != "fail")


def main():
    result = dbtRunner().invoke(sys.argv[1:])
    sys.exit(0 if result.success else 1)
"""


class Shop:
    """A project with a fake dbt in its `.venv`. Models are files whose first word says what happens when they are built."""

    def __init__(self, folder: Path, ork: OrkCli) -> None:
        self.folder, self._ork = folder, ork
        self._ledger = folder / "ledger"
        name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / ".venv")], check=True)
        package = folder / ".venv/lib" / name / "site-packages/dbt/cli"
        package.mkdir(parents=True)
        for init in (package.parent / "__init__.py", package / "__init__.py"):
            init.write_text("")
        (package / "main.py").write_text(FAKE)
        program = folder / ".venv/bin/dbt"
        program.write_text(f"#!{folder}/.venv/bin/python\nfrom dbt.cli.main import main\nmain()\n")
        program.chmod(0o755)
        (folder / "shop/models").mkdir(parents=True)
        (folder / "shop/dbt_project.yml").write_text("name: shop\n")
        (folder / "ork.yaml").write_text("pools: {one: 1}\n")

    def models(self, extra: str = "", **models: str) -> None:
        """`name="what"` or `name="what < upstream"`. Without `extra`, one at a time."""
        nodes = {}
        for name, text in models.items():
            what, _, upstream = text.partition(" < ")
            (self.folder / f"shop/models/{name}.sql").write_text(what)
            nodes[f"model.shop.{name}"] = {
                "unique_id": f"model.shop.{name}",
                "resource_type": "model",
                "name": name,
                "package_name": "shop",
                "fqn": ["shop", name],
                "depends_on": {"nodes": [f"model.shop.{upstream}"] if upstream else []},
            }
        manifest = self.folder / "shop/target/manifest.json"
        manifest.parent.mkdir(exist_ok=True)
        manifest.write_text(json.dumps({"nodes": nodes}))
        os.utime(manifest, (2e9, 2e9))  # newer than the models: dbt need not be asked for them
        extra = extra or ", pool: one"
        entry = f"{{dbt: shop, env: {{LEDGER: '{self._ledger}'}}{extra}}}"
        (self.folder / "w.yaml").write_text(f"name: w\nimport: [{entry}]\n")

    def run(self, *words: str) -> dict[str, str]:
        self._ledger.unlink(missing_ok=True)
        done = self._ork(*(words or ("run", "w.yaml")), cwd=self.folder)
        assert done.returncode in (0, 1), done.stderr
        shown = json.loads(self._ork("show", "@last", "--json", cwd=self.folder).stdout)
        return {task["name"]: task["status"] for task in shown["tasks"]}

    def log(self, task: str) -> str:
        return self._ork("logs", "@last", task, cwd=self.folder).stdout

    def noted(self, word: str) -> list[str]:
        lines = self._ledger.read_text().splitlines() if self._ledger.exists() else []
        return [line.partition(" ")[2] for line in lines if line.startswith(word + " ")]

    def built(self) -> list[str]:
        return [line.split()[0] for line in self.noted("build")]

    def are_gone(self) -> bool:
        """No process of dbt is left. Zombies of the container's first process do not count."""
        pids = [line.split()[-1] for line in (*self.noted("start"), *self.noted("build"))]
        return not any(_is_alive(pid) for pid in pids)


def _is_alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until(holds: Callable[[], Any], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def shop(tmp_path: Path, ork_cli: OrkCli) -> Shop:
    return Shop(tmp_path, ork_cli)


def test_models_share_one_dbt_and_fail_alone(shop: Shop) -> None:
    shop.models(a="fine", b="fail < a", c="fine < b", d="crash", e="fine < a")
    assert shop.run() == {"a": "success", "b": "failed", "c": "skipped", "d": "failed", "e": "success"}
    crashes = 1  # after a crash nothing is reused
    assert len(shop.noted("start")) <= 1 + crashes
    assert len(shop.noted("parse")) == len(shop.noted("start"))
    assert sorted(shop.built()) == ["a", "b", "d", "e"]
    assert len({line.split()[1] for line in shop.noted("build")}) == 4, "each has a process of its own"
    assert [shop.log(name).splitlines() for name in "abe"] == [[f"building {name}  {name}"] for name in "abe"]
    wait_until(shop.are_gone)
    # A retry performs only what did not succeed.
    shop.models(a="fine", b="fine < a", c="fine < b", d="fine", e="fine < a")
    assert set(shop.run("retry", "@last").values()) == {"success"}
    assert sorted(shop.built()) == ["b", "c", "d"]
    assert len(shop.noted("start")) == len(shop.noted("parse")) == 1


def test_a_timeout_ends_only_its_model_and_dbt_is_interrupted(shop: Shop) -> None:
    # Retried, because the machine may be so slow that the others time out as well.
    shop.models(", pool: one, timeout: 3, retries: 9, retry_on: [timeout]", a="fine", b="sleep-once < a", c="fine < a")
    assert shop.run() == {"a": "success", "b": "success", "c": "success"}
    assert shop.built().count("b") >= 2
    assert "b" in shop.noted("interrupted")
    assert "building b" in shop.log("b")
    wait_until(shop.are_gone)


def test_a_cancelled_run_leaves_no_dbt(shop: Shop, plain_environment: dict[str, str]) -> None:
    shop.models(a="fine", b="sleep < a")
    run = started(shop, plain_environment)
    wait_until(lambda: "b" in shop.built())
    run.send_signal(signal.SIGINT)
    assert run.wait(60) != 0
    wait_until(shop.are_gone)
    assert shop.noted("interrupted") == ["b"]


def test_a_killed_worker_takes_its_dbt_with_it_and_the_model_is_retried(
    shop: Shop, plain_environment: dict[str, str]
) -> None:
    shop.models(", pool: one, retries: 1", a="fine", b="sleep-once < a")
    run = started(shop, plain_environment)
    wait_until(lambda: "b" in shop.built())
    first, (server,) = [line.split()[1] for line in shop.noted("build")], shop.noted("start")
    worker = Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()[1]
    os.kill(int(worker), signal.SIGKILL)
    wait_until(lambda: not any(map(_is_alive, (*first, server))))
    assert run.wait(60) == 0
    assert shop.built() == ["a", "b", "b"]


def started(shop: Shop, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "ork", "run", "w.yaml"],
        cwd=shop.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def test_a_killed_dbt_is_replaced_and_its_model_is_retried(shop: Shop) -> None:
    shop.models(", pool: one, retries: 1", a="fine", b="kill < a", c="fine < b")
    assert shop.run() == {"a": "success", "b": "success", "c": "success"}
    assert shop.built() == ["a", "b", "b", "c"]
    assert len(shop.noted("start")) == 2


def test_models_at_the_same_time_have_a_dbt_each_which_is_used_again(shop: Shop) -> None:
    first, second = [f"a{number}" for number in range(3)], [f"b{number}" for number in range(3)]
    upstream = dict(zip(second, first, strict=True))
    shop.models(", retries: 0", **dict.fromkeys(first, "fine"), **{name: f"fine < {upstream[name]}" for name in second})
    assert set(shop.run().values()) == {"success"}
    assert sorted(shop.built()) == [*first, *second]
    assert len(shop.noted("start")) <= 3
    assert all(shop.log(name) == f"building {name}  {name}\n" for name in (*first, *second))


def test_a_change_is_parsed_before_the_next_model(shop: Shop) -> None:
    shop.models(a="edit b", b="fail < a", c="fine < b")
    assert shop.run() == {"a": "success", "b": "success", "c": "success"}
    assert (len(shop.noted("start")), len(shop.noted("parse"))) == (1, 2)


def test_a_dbt_that_cannot_be_forked_starts_anew_and_says_why(shop: Shop) -> None:
    (shop.folder / "thread").touch()
    shop.models(a="fine", b="fail < a")
    assert shop.run() == {"a": "success", "b": "failed"}
    assert "dbt starts anew for this task: it has started a thread" in shop.log("a")
    assert len(shop.noted("start")) == 3  # the one that stays, and one for each model
    wait_until(shop.are_gone)
