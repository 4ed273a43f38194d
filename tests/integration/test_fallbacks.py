"""What works in a slower way than it should says so: in the log, in a metric, in `ork status` and in `ork doctor`."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from ork.app.executors import executors_of
from ork.app.installation import Installation
from ork.app.stores import empty_store
from ork.objects.local import LocalObjects
from ork.objects.opening import open_objects
from ork.settings import load_settings
from ork.telemetry import JOURNAL, NEWS_SOCKET, Fallbacks
from tests.acceptance.waiting import wait_until
from tests.conftest import OrkCli
from tests.serving import serving

BROKEN = f"""#!/bin/sh
case "$*" in *ork.worker.pool.fork_server*) echo 'ImportError: libbroken.so is missing' >&2; exit 1;; esac
exec {sys.executable} "$@"
"""


def project(folder: Path) -> None:
    (folder / "tasks.py").write_text("def main():\n    return 1\n")
    (folder / "flow.yaml").write_text("name: flow\ntasks: {a: {file: tasks.py, function: main}}\n")


def break_fork_server(folder: Path) -> None:
    """The project's interpreter works, but for the fork server."""
    python = folder / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(BROKEN)
    python.chmod(0o755)
    version = ".".join(map(str, sys.version_info[:3]))
    (folder / ".venv/pyvenv.cfg").write_text(f"version = {version}\n")


def test_a_fork_server_that_crashes_is_in_log_metric_status_and_doctor(
    tmp_path: Path, ork_cli: OrkCli, plain_environment: dict[str, str]
) -> None:
    project(tmp_path)
    break_fork_server(tmp_path)
    with serving(tmp_path, plain_environment) as served:
        assert ork_cli("run", "flow.yaml", cwd=tmp_path).returncode == 0
        metrics = served.ask("GET", "/metrics")[1].decode()
        assert 'ork_fallbacks_total{component="fork server"}' in metrics
        assert 'ork_degraded{component="fork server"} 1.0' in metrics
        wait_until(lambda: "libbroken.so is missing" in ork_cli("status", cwd=tmp_path).stdout)
        (entry,) = json.loads(ork_cli("status", "--json", cwd=tmp_path).stdout)["schedulers"]
        assert ["libbroken.so is missing" in note for note in entry["notes"]] == [True]
        assert served.ask("GET", "/schedulers")[1]["schedulers"][0]["notes"] == entry["notes"]
        doctor = ork_cli("doctor", cwd=tmp_path).stdout
        said = served.stop()
    assert "slower than it should be  component=fork server" in said
    assert "libbroken.so is missing" in said
    assert "schedulers   slower than it should be: fork server: none starts in" in doctor
    assert f"fork server  does not work in {tmp_path}/.venv/bin/python: ImportError: libbroken.so is missing" in doctor


def test_ork_run_says_so_as_well(tmp_path: Path, ork_cli: OrkCli) -> None:
    project(tmp_path)
    break_fork_server(tmp_path)
    done = ork_cli("run", "flow.yaml", cwd=tmp_path)
    assert done.returncode == 0
    assert "slower than it should be: fork server" in done.stderr + done.stdout


def test_where_all_is_well_nothing_is_said(tmp_path: Path, ork_cli: OrkCli) -> None:
    project(tmp_path)
    done = ork_cli("run", "flow.yaml", cwd=tmp_path)
    assert "slower" not in done.stderr + done.stdout
    doctor = ork_cli("doctor", cwd=tmp_path).stdout
    assert "slower" not in doctor
    assert "fork server  works in" in doctor


def test_a_journal_that_became_plain_files_is_noted(tmp_path: Path) -> None:
    open_objects(f"file:{tmp_path}/objects").put("ork.objects.json", b"{}")
    settings = load_settings(folder=str(tmp_path), objects=f"journal:{tmp_path}/objects", environ={})
    installation = Installation(settings, empty_store(), LocalObjects(f"{tmp_path}/objects"))

    async def notes() -> dict[str, str]:
        service = await installation.scheduler("scheduler")
        await installation.close()
        return service.telemetry.fallbacks.reasons

    assert str(tmp_path) in asyncio.run(notes())[JOURNAL]


def test_a_news_socket_that_cannot_be_made_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ork.executors.status_socket._DEFAULT_FOLDER", str(tmp_path / "nowhere"))
    fallbacks = Fallbacks(lambda _component, _reason: None)
    settings = load_settings(folder=str(tmp_path), environ={})
    places = executors_of(settings, LocalObjects(str(tmp_path)), empty_store(), fallbacks=fallbacks)
    assert places["python"].status_address is None  # type: ignore[attr-defined]
    assert "No such file" in fallbacks.reasons[NEWS_SOCKET]
