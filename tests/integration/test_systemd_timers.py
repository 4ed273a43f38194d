"""What systemd itself says of the units and times that Ork uses. No service manager is started: it would move processes of this machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ork.alarms import systemd
from ork.alarms.systemd import SystemdTimers
from ork.errors import AlarmError

pytestmark = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


def test_times_of_timers_are_times_for_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, commands = datetime(2026, 3, 28, 12, 0, 0, 400_000, tzinfo=UTC), []

    def note(_timers: SystemdTimers, command: list[str]) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(systemd.SystemdTimers, "_run", note)
    timers = SystemdTimers(str(tmp_path), {}, lambda: now)
    timers.create("00-wake-1-0", now.replace(second=1, microsecond=0))
    timers.create("00-due-1-0", now.replace(year=2027))
    (near,), (far,) = ([word for word in command if word.startswith("--on-")] for command in commands)
    assert "600ms" in shown("timespan", near.removeprefix("--on-active="))
    assert "2027-03-28 12:00:00 UTC" in shown("calendar", far.removeprefix("--on-calendar="))


def shown(what: str, text: str) -> str:
    return subprocess.run(["systemd-analyze", what, text], capture_output=True, text=True, check=True).stdout


def test_systemd_run_knows_every_option(tmp_path: Path) -> None:
    """Without a service manager it fails only when it tries to reach one, after it has read all options."""
    if Path("/run/systemd/system").exists():
        pytest.skip("this machine was started by systemd: a timer would be set")
    with pytest.raises(AlarmError, match=r"System has not been booted with systemd|Failed to connect to bus"):
        SystemdTimers(str(tmp_path), {"ORK_HEARTBEAT_SECONDS": "5"}).create(
            "00-due-1-0", datetime(2036, 1, 1, tzinfo=UTC)
        )


def test_units_in_the_documentation_are_valid(tree: Path, tmp_path: Path) -> None:
    page = (tree / "docs" / "scale-to-zero.md").read_text()
    units = re.findall(r"```ini\n# /etc/systemd/system/(\S+)\n(.*?)```", page, re.S)
    assert len(units) == 3
    for number, (name, text) in enumerate(units):
        folder = tmp_path / str(number)
        folder.mkdir()
        for other, other_text in (*units, (name, text)):  # a timer needs its service beside it
            (folder / other).write_text(other_text)
        done = subprocess.run(["systemd-analyze", "verify", folder / name], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), name
