"""One installation, one object store: processes with other settings are refused before they do anything."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.waiting import wait_until
from tests.postgres import server_or_skip
from tests.serving import start_ork as started_ork

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

HELD = "[sh, -c, 'echo begun >> $LEDGER; while [ ! -e go ]; do sleep 0.05; done']"
WORKFLOW = f"name: held\ntasks:\n  a: {{command: {HELD}, env: {{LEDGER: FOLDER/ledger}}}}\n"


class Place:
    """A project with its state store; `ork` runs there, by default with the right object store."""

    def __init__(self, folder: Path, cli: OrkCli, environment: dict[str, str], store: str) -> None:
        self.folder = folder
        self.store = store
        self.own = {"ORK_STORE": store, "ORK_OBJECTS": f"file:{folder}/a"}
        self.other = {"ORK_STORE": store, "ORK_OBJECTS": f"file:{folder}/b"}
        self._cli = cli
        self._environment = environment
        self.started: list[subprocess.Popen[str]] = []
        (folder / "workflow.yaml").write_text(WORKFLOW.replace("FOLDER", str(folder)))

    def ork(self, *args: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return self._cli(*args, cwd=self.folder, env=self.own if env is None else env)

    def start(self, *args: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        environment = {**self._environment, **(self.own if env is None else env)}
        self.started.append(started_ork(self.folder, environment, *args))
        return self.started[-1]

    def starts(self) -> int:
        ledger = self.folder / "ledger"
        return len(ledger.read_text().splitlines()) if ledger.exists() else 0

    def forget_record(self) -> None:
        """The state store and the object store are as an older Ork left them."""
        if self.store.startswith("sqlite:"):
            with sqlite3.connect(self.store.removeprefix("sqlite:")) as database:
                database.execute("DELETE FROM meta WHERE name = 'shared_settings'")
        else:
            server_or_skip().sql("DELETE FROM ork.meta WHERE name = 'shared_settings'", self.store.rpartition("/")[2])
        for name in ("a", "b"):
            (self.folder / name / "identity.json").unlink(missing_ok=True)


@pytest.fixture(params=["sqlite", "postgres"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, ork_cli: OrkCli, plain_environment: dict[str, str]
) -> Iterator[Place]:
    if request.param == "sqlite":
        store = f"sqlite:{tmp_path}/ork.db"
    else:
        server = server_or_skip()
        store = server.url(server.new_database())
    made = Place(tmp_path, ork_cli, plain_environment, store)
    yield made
    (tmp_path / "go").touch()
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _kill_all_but_the_task(scheduler: subprocess.Popen[str]) -> None:
    os.kill(scheduler.pid, signal.SIGKILL)
    scheduler.wait(30)


def _wait_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert "ready" in process.stdout.readline()


def _is_refused(done: subprocess.CompletedProcess[str], place: Place) -> bool:
    said = done.stderr
    return (
        done.returncode == 1
        and "this is not the object store of the installation" in said
        and f"{place.folder}/a" in said
        and f"{place.folder}/b" in said
        and "ork db use-settings" in said
    )


def test_a_scheduler_with_another_object_store_starts_nothing_a_second_time(place: Place) -> None:
    place.ork("deploy", "workflow.yaml")
    place.ork("trigger", "held")
    scheduler = place.start("scheduler")
    wait_until(lambda: place.starts() == 1)
    for command in (["tick"], ["scheduler"], ["serve", "--port", "0"], ["run", "workflow.yaml"]):
        assert _is_refused(place.ork(*command, env=place.other), place), command
    _kill_all_but_the_task(scheduler)
    assert _is_refused(place.ork("tick", env=place.other), place)
    assert place.starts() == 1
    (place.folder / "go").touch()
    wait_until(lambda: '"finished": 1' in place.ork("tick").stdout)
    assert place.starts() == 1


def test_state_is_read_without_the_object_store_and_logs_say_where_they_are(place: Place) -> None:
    (place.folder / "go").touch()
    assert place.ork("run", "workflow.yaml").returncode == 0
    for command in (["show", "@last"], ["runs"], ["why", "@last"], ["status"]):
        done = place.ork(*command, env=place.other)
        assert done.returncode == 0, done.stderr
    for command in (["logs", "@last"], ["prune", "--older-than", "0d"]):
        assert _is_refused(place.ork(*command, env=place.other), place), command
    assert len(json.loads(place.ork("runs", "--json").stdout)["runs"]) == 1
    assert not (place.folder / "b").exists()


def test_an_object_store_that_was_deleted_is_named_and_work_goes_on_with_a_new_one(place: Place) -> None:
    (place.folder / "go").touch()
    assert place.ork("run", "workflow.yaml").returncode == 0
    shutil.rmtree(place.folder / "a")
    for _ in range(2):
        done = place.ork("run", "workflow.yaml")
        assert done.returncode == 1
        assert f"error[ORK812]: the object store of the installation, file:{place.folder}/a, is missing" in done.stderr
        assert "logs and large outputs of earlier runs are gone" in done.stderr
        assert "ork db use-settings" in done.stderr
        assert done.stderr.count(f"{place.folder}/a") == 1
    assert place.ork("db", "use-settings").returncode == 0
    assert place.ork("run", "workflow.yaml").returncode == 0


def test_of_two_that_open_a_new_installation_at_once_one_is_refused(place: Place) -> None:
    place.ork("db", "migrate")
    both = [place.start("tick", env=each) for each in (place.own, place.other)]
    codes = sorted(process.wait(60) for process in both)
    assert codes == [0, 1]
    recorded = json.loads(place.ork("db", "settings", "--json").stdout)["recorded"]
    folder = Path(recorded["objects_url"].removeprefix("file:"))
    assert json.loads((folder / "identity.json").read_text())["id"] == recorded["objects"]


def test_many_that_open_a_new_installation_alike_agree(place: Place) -> None:
    processes = [place.start("tick") for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0, 0, 0, 0]


def test_an_older_installation_in_mid_run_is_taken_over_only_with_its_own_objects(place: Place) -> None:
    place.ork("deploy", "workflow.yaml")
    place.ork("trigger", "held")
    scheduler = place.start("scheduler")
    wait_until(lambda: place.starts() == 1)
    _kill_all_but_the_task(scheduler)
    place.forget_record()
    wrong = place.ork("tick", env=place.other)
    assert wrong.returncode == 1
    assert "1 attempt that is active" in wrong.stderr
    assert not (place.folder / "b" / "identity.json").exists()
    assert place.ork("tick").returncode == 0
    assert _is_refused(place.ork("tick", env=place.other), place)
    (place.folder / "go").touch()
    wait_until(lambda: '"finished": 1' in place.ork("tick").stdout)
    assert place.starts() == 1


def test_the_object_store_is_changed_on_purpose_while_nothing_runs(place: Place) -> None:
    place.ork("deploy", "workflow.yaml")
    idle = place.start("scheduler")
    _wait_ready(idle)
    place.ork("trigger", "held")
    wait_until(lambda: place.starts() == 1)
    refused = place.ork("db", "use-settings", env=place.other)
    assert refused.returncode == 4
    assert "1 attempt is active" in refused.stderr
    (place.folder / "go").touch()
    wait_until(lambda: "all have ended" in place.ork("status").stdout)
    assert place.ork("db", "settings", env=place.other).returncode == 1
    changed = place.ork("db", "use-settings", env=place.other)
    assert changed.returncode == 0, changed.stderr
    assert "settings.use" in place.ork("audit").stdout
    assert place.ork("trigger", "held", env=place.other).returncode == 0
    assert idle.wait(60) == 1  # it noticed when it wanted to work again
    assert place.starts() == 1
    assert place.ork("tick", env=place.other).returncode == 0
    wait_until(lambda: place.starts() == 2)


def test_schedulers_must_agree_on_when_a_worker_is_lost(place: Place) -> None:
    assert place.ork("tick").returncode == 0
    impatient = place.ork("tick", env={**place.own, "ORK_STALE_SECONDS": "5"})
    assert impatient.returncode == 1
    assert "the stale limit is 5s on this machine and 60s in the installation" in impatient.stderr
    assert "ORK_STALE_SECONDS=60" in impatient.stderr
    assert place.ork("db", "use-settings", env={**place.own, "ORK_STALE_SECONDS": "5"}).returncode == 0
    assert place.ork("tick", env={**place.own, "ORK_STALE_SECONDS": "5"}).returncode == 0
    assert place.ork("tick").returncode == 1


def test_a_folder_of_files_does_not_become_one_of_journals(place: Place) -> None:
    assert place.ork("tick").returncode == 0
    assert place.ork("tick", env={**place.own, "ORK_OBJECTS": f"journal:{place.folder}/a"}).returncode == 0
    assert not (place.folder / "a" / ".ork-journals").exists()


@pytest.mark.linux
def test_journals_are_refused_on_a_machine_that_reaches_them_over_a_network(place: Place) -> None:
    """A ramfs takes the part of the network file system: its type is not one on which appending is known to be atomic."""
    here, mounted = place.folder / "journals", place.folder / "mounted"
    mounted.mkdir()
    if subprocess.run(["mount", "-t", "ramfs", "ramfs", str(mounted)], capture_output=True).returncode:
        pytest.skip("cannot mount a ramfs here: a folder on a network disk is not tested")
    try:
        local = {**place.own, "ORK_OBJECTS": f"journal:{here}"}
        assert place.ork("tick", env=local).returncode == 0
        assert (here / ".ork-journals").exists()
        shutil.copytree(here, mounted / "journals")
        refused = place.ork("tick", env={**place.own, "ORK_OBJECTS": f"journal:{mounted}/journals"})
        assert refused.returncode == 1
        assert "reaches the folder over a network" in refused.stderr
        assert "db use-settings" in refused.stderr
        # A new folder there gets files, which all machines can use.
        files = {**place.own, "ORK_OBJECTS": f"journal:{mounted}/new"}
        assert place.ork("db", "use-settings", env=files).returncode == 0
        assert place.ork("tick", env=files).returncode == 0
        assert not (mounted / "new" / ".ork-journals").exists()
    finally:
        subprocess.run(["umount", "-l", str(mounted)], check=True)
