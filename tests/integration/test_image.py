"""The image, built by a real engine and run as deploy/compose.yaml says, on a real Postgres."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import postgres
from tests.acceptance.waiting import wait_until
from tests.docker import Daemon, daemon_or_skip, fresh_name, python_image

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = "server,postgres,traces,alerts"
OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]
FLOW = """\
name: shipped
tasks:
  who: {command: [sh, -c, 'printf %s "$(id -u)"']}
  add: {file: tasks.py, function: add, depends_on: [who], inputs: {a: 2, b: 3}}
  store: {command: [sh, -c, 'cat /run/secrets/ork_store /var/lib/ork/objects/* /srv/flows/.ork/* || echo "\\"denied\\""']}
"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def _shelf(folder: Path) -> Iterator[str]:
    """A folder of wheels as a page pip can look at."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


def _wheels(folder: Path) -> None:
    """Of everything the image installs, by this machine's own pip."""
    locked = [sys.executable, "deploy/locked.py", "pyproject.toml", "deploy/requirements.lock", EXTRAS]
    (folder / "locked.txt").write_text(subprocess.check_output(locked, cwd=ROOT, text=True))
    words = [sys.executable, "-m", "pip", "download", "-q", "-d", str(folder), "--require-hashes"]
    words += ["-r", str(folder / "locked.txt"), "-r", str(ROOT / "deploy/build.lock")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        pytest.skip(f"the packages of the image cannot be had here: {done.stderr[-300:]}")


def _python_to_build_with(daemon: Daemon) -> str:
    """In place of python:slim, which no registry gives us here: this interpreter, with what pip and wheels need."""
    package = Path(sys.base_prefix, "lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "ensurepip")
    files = {
        f"usr/local/lib/{package.parent.name}/{path.relative_to(package.parent)}": path.read_bytes()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("no setpriv: schedulers cannot be started as compose.yaml says")
    files["usr/bin/setpriv"] = Path(setpriv).read_bytes()
    for library in (
        "libcap-ng.so.0",
        "libgcc_s.so.1",
        "libstdc++.so.6",
        "libpthread.so.0",
        "libm.so.6",
        "libdl.so.2",
        "librt.so.1",
    ):
        found = next(Path("/lib").glob(f"*-linux-gnu/{library}"), None)
        if found is not None:
            files[str(found)] = found.read_bytes()
    tools = (
        'RUN ["/bin/busybox", "--install", "-s", "/bin"]',
        'RUN ["/bin/busybox", "chmod", "755", "/usr/bin/setpriv"]',
    )
    return python_image(daemon, "ork-test-slim", files, *tools)


@pytest.fixture(scope="module")
def image() -> str:
    daemon = daemon_or_skip()
    base = _python_to_build_with(daemon)
    with tempfile.TemporaryDirectory(prefix="ork-wheels-") as folder, _shelf(Path(folder)) as shelf:
        _wheels(Path(folder))
        given = {"PYTHON": base, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": shelf}
        arguments = [word for name, value in given.items() for word in ("--build-arg", f"{name}={value}")]
        file = str(ROOT / "deploy/Dockerfile")
        daemon.docker("build", "-q", "--network", "host", *arguments, "-f", file, "-t", "ork", str(ROOT))
    return "ork"


class Installation:
    """Containers made from the services of compose.yaml; only their network is this machine's."""

    def __init__(self, daemon: Daemon, folder: Path, store: str) -> None:
        self.daemon = daemon
        self._services = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())["services"]
        self._volume = fresh_name("objects")
        self._started: list[str] = []
        self._flows, secret = folder / "flows", folder / "ork_store"
        (self._flows / ".ork").mkdir(parents=True)
        (self._flows / "workflow.yaml").write_text(FLOW)
        (self._flows / "tasks.py").write_text("def add(a, b):\n    return a + b\n")
        secret.write_text(store + "\n")
        os.chown(secret, 10001, 10001)
        secret.chmod(0o400)
        self._places = {"/srv/flows": str(self._flows), "/run/secrets/ork_store": str(secret)}
        os.chmod(folder, 0o755)

    def start(self, service: str, *more: str) -> str:
        name = fresh_name(service)
        self._started.append(name)
        return self._run(service, "-d", "--name", name, words=[*self._command(service), *more])

    def remove(self) -> None:
        """Others use the same engine, and look for what was left there."""
        for name in self._started:
            self.daemon.docker("rm", "-fv", name)
        if self._volume in self.daemon.volumes():
            self.daemon.docker("volume", "rm", self._volume)

    def once(self, service: str, *words: str) -> str:
        return self._run(service, "--rm", words=[*words] or self._command(service))

    def _command(self, service: str) -> list[str]:
        return [str(word) for word in self._services[service]["command"]]

    def _run(self, service: str, *options: str, words: list[str]) -> str:
        said = self._services[service]
        named = [word for pair in said["environment"].items() for word in ("-e", "=".join(pair))]
        rights = ["--read-only", "--user", said["user"], "--init", "--network", "host"]
        rights += [word for each in said["cap_drop"] for word in ("--cap-drop", each)]
        rights += [word for each in said.get("cap_add", []) for word in ("--cap-add", each)]
        rights += [word for each in said["security_opt"] for word in ("--security-opt", each)]
        rights += [word for each in said["tmpfs"] for word in ("--tmpfs", each)]
        mounts = [word for inside, outside in self._places.items() for word in ("-v", f"{outside}:{inside}:ro")]
        mounts += ["-v", f"{self._volume}:/var/lib/ork"]
        program, *before = said.get("entrypoint", ["ork"])
        mounts += ["--entrypoint", program]
        return self.daemon.docker("run", *options, *rights, *named, *mounts, said["image"], *before, *words)

    def state(self, container: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.daemon.docker("inspect", container))[0]
        return found


@pytest.fixture
def installed(image: str, tmp_path: Path) -> Iterator[Installation]:
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv: Postgres cannot be started")
    with postgres.fresh_database() as store:
        installation = Installation(daemon_or_skip(), tmp_path, store)
        yield installation
        installation.remove()


def test_the_image_is_nobody_and_says_how_it_is(image: str) -> None:
    daemon = daemon_or_skip()
    assert daemon.docker("run", "--rm", "--network", "none", image, "--version").startswith("ork ")
    config = json.loads(daemon.docker("image", "inspect", image))[0]["Config"]
    assert (config["User"], config["WorkingDir"]) == ("10001:10001", "/srv/flows")
    assert "readyz" in " ".join(config["Healthcheck"]["Test"])


def test_postgres_two_schedulers_and_an_api_run_a_workflow_as_compose_says(
    installed: Installation, ork_cli: OrkCli, tmp_path: Path
) -> None:
    assert installed.once("migrate").startswith("schema ")
    token = installed.once("api", "token", "create", "--role", "admin", "--name", "me")
    assert installed.once("api", "deploy", "workflow.yaml")
    schedulers = [installed.start(name) for name in ("scheduler-1", "scheduler-2")]
    port = str(postgres.free_port())
    api = installed.start("api", "--port", port)

    def is_ready() -> bool:
        assert installed.state(api)["State"]["Running"], installed.daemon.docker("logs", api)
        check = installed.state(api)["Config"]["Healthcheck"]["Test"][1:]
        asked = [word.replace(":8700", f":{port}") for word in check]
        told = subprocess.run(["docker", "-H", installed.daemon.url, "exec", api, *asked], capture_output=True)
        return told.returncode == 0

    wait_until(is_ready)
    through = {"ORK_SERVER": f"http://127.0.0.1:{port}", "ORK_TOKEN": token}
    for scheduler in schedulers:
        assert installed.state(scheduler)["State"]["Running"], installed.daemon.docker("logs", scheduler)
    wait_until(
        lambda: len(json.loads(ork_cli("status", "--json", cwd=tmp_path, env=through).stdout)["schedulers"]) == 2
    )
    done = ork_cli("trigger", "shipped", "--wait", cwd=tmp_path, env=through)
    assert done.returncode == 0, done.stdout + done.stderr
    run = json.loads(ork_cli("show", "@last", "--json", cwd=tmp_path, env=through).stdout)
    assert {task["name"]: task["output"] for task in run["tasks"]} == {"who": 10002, "add": 5, "store": "denied"}
    for scheduler in schedulers:
        installed.daemon.docker("stop", scheduler)
        assert installed.state(scheduler)["State"]["ExitCode"] == 0
