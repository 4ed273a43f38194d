"""Tasks as another user (`task_user`): who they are, what they cannot reach, and that all else works as ever."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import OrkCli

USER = "nobody"
PYTHON = "/usr/bin/python3"
ISOLATIONS = ["fork", "interpreter", "shared"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.getuid() != 0, reason="only root can run tasks as another user"),
]


class Yard:
    """A project that another user can read, with an interpreter that it can run."""

    def __init__(self, folder: Path, ork: OrkCli) -> None:
        self.folder = folder
        self._ork = ork
        subprocess.run([PYTHON, "-m", "venv", "--without-pip", folder / ".venv"], check=True)
        self.write("ork.yaml", f"task_user: {USER}\n")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def run(self, tasks: str, code: str = "", *, isolation: str = "fork", expected: int = 0) -> str:
        self.write("workflow.yaml", f"name: w\ntasks:\n{tasks}")
        self.write("tasks.py", code)
        done = self._ork("run", cwd=self.folder, env={"ORK_ISOLATION": isolation})
        assert done.returncode == expected, done.stdout + done.stderr
        return str(done.stdout + done.stderr)

    def output(self, task: str) -> Any:
        return json.loads(self._ork("output", "@last", task, cwd=self.folder).stdout)

    def log(self, task: str) -> str:
        return str(self._ork("logs", "@last", task, cwd=self.folder).stdout)


@pytest.fixture
def yard(ork_cli: OrkCli) -> Iterator[Yard]:
    """Not below pytest's own folder, which nobody else may enter."""
    if not os.access(PYTHON, os.X_OK):
        pytest.skip(f"there is no {PYTHON}, an interpreter that another user can run")
    folder = Path(f"/tmp/ork-task-user-{os.getpid()}")
    folder.mkdir(mode=0o755)
    yield Yard(folder, ork_cli)
    shutil.rmtree(folder)


WHO = """
import os

def who():
    caps = [line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff")]
    return [*os.getresuid(), *os.getresgid(), os.environ["USER"], int(caps[0], 16)]
"""


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_functions_and_commands_run_as_that_user_for_good(yard: Yard, isolation: str) -> None:
    yard.run(
        "  who: {file: tasks.py, function: who}\n  command: {command: [sh, -c, 'echo told > /dev/stderr; id -u']}\n",
        WHO,
        isolation=isolation,
    )
    known = pwd.getpwnam(USER)
    assert yard.output("who") == [known.pw_uid] * 3 + [known.pw_gid] * 3 + [USER, 0]
    assert yard.output("command") == known.pw_uid
    assert "told" in yard.log("command")


PEEK = """
import os

def tried(path):
    try:
        os.listdir(path) if os.path.isdir(path) else open(path, "rb").close()
        return "open"
    except OSError as error:
        return error.strerror

def peek():
    worker = os.getppid()
    paths = [".ork/ork.db", ".ork/objects", ".ork/token", f"/proc/{worker}/environ", f"/proc/{worker}/mem"]
    found = {path: tried(path) for path in paths}
    try:
        os.kill(worker, 9)
        found["kill"] = "done"
    except OSError as error:
        found["kill"] = error.strerror
    kinds = [os.readlink(f"/proc/self/fd/{each}").partition(":")[0] for each in os.listdir("/proc/self/fd") if int(each) > 2
             and os.path.exists(f"/proc/self/fd/{each}")]
    return [sorted(set(found.values())), [kind for kind in kinds if kind != "pipe" and "/fd" not in kind]]
"""


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_nothing_of_the_installation_is_within_reach(yard: Yard, isolation: str) -> None:
    (yard.folder / ".ork").mkdir(0o700)
    (yard.folder / ".ork" / "token").write_text("secret")
    yard.run("  peek: {file: tasks.py, function: peek}\n", PEEK, isolation=isolation)
    assert yard.output("peek") == [["Operation not permitted", "Permission denied"], []]


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_large_values_go_in_and_come_out(yard: Yard, isolation: str) -> None:
    yard.run(
        "  make: {file: tasks.py, function: make}\n"
        "  take: {file: tasks.py, function: take, depends_on: [make]}\n"
        "  count: {command: [sh, -c, 'wc -c < $ORK_INPUT_FILE > $ORK_OUTPUT_FILE'], depends_on: [make]}\n",
        "def make():\n    return 'x' * 300_000\n\ndef take(make):\n    return len(make)\n",
        isolation=isolation,
    )
    assert (yard.output("take"), yard.output("count")) == (300_000, 300_002)


@pytest.mark.parametrize("trick", ["ln -s /etc/shadow $ORK_OUTPUT_FILE", "mkfifo $ORK_OUTPUT_FILE"])
def test_no_link_makes_the_worker_read_what_only_it_may_read(yard: Yard, trick: str) -> None:
    said = yard.run(f"  trick: {{command: [sh, -c, '{trick}']}}\n", expected=1)
    assert "the content of $ORK_OUTPUT_FILE is invalid" in said
    assert "root:" not in said


def test_a_task_of_another_user_is_ended_with_its_children(yard: Yard) -> None:
    said = yard.run(
        "  slow: {command: [sh, -c, 'sleep 987654 & trap \"\" TERM; sleep 987654'], timeout: 1s}\n", expected=1
    )
    assert "timed out after 1s" in said
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "sleep 987654" not in left


def test_an_environment_is_built_by_that_user(yard: Yard) -> None:
    with zipfile.ZipFile(yard.folder / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "SIZE = 7\n")
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\ntiny-1.0.dist-info/METADATA,,\n")
    yard.run(
        "  use: {file: tasks.py, function: use, environment: {requirements: [./tiny-1.0-py3-none-any.whl]}}\n",
        "def use():\n    import os, tiny\n    return [tiny.SIZE, os.stat(tiny.__file__).st_uid, os.getuid()]\n",
    )
    uid = pwd.getpwnam(USER).pw_uid
    assert yard.output("use") == [7, uid, uid]


@pytest.mark.parametrize(("user", "why"), [("nobody-at-all", "there is no user"), ("root", "do not run as root")])
def test_a_user_that_cannot_be_is_said_at_the_start(yard: Yard, user: str, why: str) -> None:
    yard.write("ork.yaml", f"task_user: {user}\n")
    assert why in yard.run("  a: {command: 'true'}\n", expected=2)


def test_a_function_that_is_asked_about_a_job_runs_as_that_user(yard: Yard) -> None:
    yard.run(
        "  wait: {file: tasks.py, function: wait}\n",
        "import os\nimport ork\n\n"
        "def wait():\n    return ork.defer(ork.call_job('tasks:look', {}))\n\n"
        "def look():\n    return os.getuid()\n",
    )
    assert yard.output("wait") == pwd.getpwnam(USER).pw_uid


def test_workflows_of_a_folder_are_loaded_by_that_user(yard: Yard) -> None:
    """Its Python files are user code: loading them for a location is running them."""
    flows = yard.folder / "flows"
    flows.mkdir()
    open_to_all = yard.folder / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    (flows / "flow.py").write_text(
        "import os\nimport ork\n\n"
        f"open('{open_to_all}/' + str(os.getuid()), 'w').close()\n"
        "etl = ork.Workflow('etl')\n\n@etl.task\ndef a():\n    return 1\n"
    )
    yard.write("locations.yaml", "- {name: flows, path: flows}\n")
    environment = {**os.environ, "ORK_TASK_USER": USER}
    interpreter = [yard.folder / ".venv" / "bin" / "python"]
    path = os.pathsep.join(each for each in sys.path if "site-packages" in each or each.endswith("src"))
    done = subprocess.run(
        [*interpreter, "-m", "ork", "tick"],
        cwd=yard.folder,
        env={**environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [each.name for each in open_to_all.iterdir()] == [str(pwd.getpwnam(USER).pw_uid)], done.stderr


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_service_without_root_needs_the_capabilities_and_its_tasks_have_none(yard: Yard, isolation: str) -> None:
    service = pwd.getpwnam("daemon")
    capabilities = "+setuid,+setgid,+chown,+kill,+dac_override,+sys_ptrace"
    yard.write("workflow.yaml", "name: w\ntasks:\n  who: {file: tasks.py, function: who}\n  id: {command: [id, -u]}\n")
    yard.write("tasks.py", WHO)
    home = yard.folder / "home"
    home.mkdir()
    os.chown(home, service.pw_uid, service.pw_gid)
    path = os.pathsep.join(each for each in sys.path if "site-packages" in each or each.endswith("src"))
    given = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "ORK_TASK_USER": USER, "ORK_ISOLATION": isolation}
    temporary = yard.folder / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)
    given |= {
        "TMPDIR": str(temporary),
        "ORK_STORE": f"sqlite:{home}/ork.db",
        "ORK_OBJECTS": f"journal:{home}/objects",
        "HOME": str(home),
    }
    python = str(yard.folder / ".venv" / "bin" / "python")
    become = ["setpriv", f"--reuid={service.pw_uid}", f"--regid={service.pw_gid}", "--clear-groups"]

    def ork(*words: str, allowed: str = capabilities) -> subprocess.CompletedProcess[str]:
        caps = [f"--inh-caps={allowed}", f"--ambient-caps={allowed}"] if allowed else []
        line = [*become, *caps, python, "-m", "ork", *words]
        return subprocess.run(line, cwd=yard.folder, env=given, capture_output=True, text=True, check=False)

    refused = ork("run", allowed="")
    assert (refused.returncode, "CAP_SETUID" in refused.stderr) == (2, True), refused.stderr
    assert "deploy/systemd/task-user.conf" in refused.stderr
    for each in capabilities.split(","):
        refused = ork("run", allowed=capabilities.replace(each, "").replace(",,", ",").strip(","))
        lacks = f"may not run tasks as `{USER}`: it lacks CAP_{each[1:].upper()}\n"
        assert (refused.returncode, lacks in refused.stderr) == (2, True), refused.stderr
    done = ork("run")
    assert done.returncode == 0, done.stdout + done.stderr
    known = pwd.getpwnam(USER)
    assert json.loads(ork("output", "@last", "who").stdout) == [known.pw_uid] * 3 + [known.pw_gid] * 3 + [USER, 0]
    assert json.loads(ork("output", "@last", "id").stdout) == known.pw_uid
    assert list(temporary.iterdir()) == []


def test_a_project_that_the_user_cannot_read_is_said_by_the_failure_and_by_doctor(yard: Yard, ork_cli: OrkCli) -> None:
    assert "tasks run as nobody" in ork_cli("doctor", cwd=yard.folder).stdout
    yard.folder.chmod(0o700)
    said = yard.run(
        "  f: {file: tasks.py, function: f}\n  c: {command: 'true'}\n", "def f():\n    return 1\n", expected=1
    )
    assert said.count("Permission denied (tasks run as the user `nobody`, who must be able to read it)") == 2
    checked = ork_cli("doctor", cwd=yard.folder)
    assert (checked.returncode, f"nobody cannot read {yard.folder}" in checked.stdout) == (1, True), checked.stdout


VALUES = """
import os
from pathlib import Path
import ork

def make():
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"made-{os.getpid()}"
    folder.mkdir()
    (folder / "a.txt").write_text("inside")
    return {"raw": bytes(range(256)) * 500, "folder": ork.File(folder), "many": ["x" * 100] * 10_000}

def take(make, count: ork.File):
    (file,) = make["folder"].files()
    return [len(make["raw"]), file.path.read_text(), count.read_bytes().decode().strip()]
"""


@pytest.mark.parametrize("isolation", ["fork", "shared"])
def test_values_that_are_not_json_go_in_and_come_out(yard: Yard, isolation: str) -> None:
    """Also those in an output that is too large for a status. A link in place of the output is not followed."""
    yard.run(
        "  make: {file: tasks.py, function: make}\n"
        "  count:\n    command: [sh, -c, 'wc -c < \"$0\" > $ORK_OUTPUT_DIR/n.txt', {ref: make.raw, as: file}]\n"
        "    output: {from_file: n.txt}\n"
        "  take: {file: tasks.py, function: take, depends_on: [make, count]}\n",
        VALUES,
        isolation=isolation,
    )
    assert yard.output("take") == [128_000, "inside", "128000"]
    said = yard.run(
        "  steal:\n    command: [sh, -c, 'ln -s /etc/shadow $ORK_OUTPUT_DIR/n.txt']\n    output: {from_file: n.txt}\n",
        expected=1,
    )
    assert "n.txt cannot be used as output" in said
