"""Timers as transient systemd timer units: each starts `ork tick` once, in the project's folder.

As root the units are the system's, else the user's own. They survive the end of this process, but not a restart of the
machine: see docs/scale-to-zero.md for the unit that starts the first tick.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from ork.alarms.timers import Timer
from ork.errors import AlarmError, UsageError
from ork.state.urls import without_password

CALL_SECONDS = 10.0
LONGEST = timedelta(days=365)
# A time this near could pass before systemd has read it, and a calendar time that has passed is refused.
NEAR = timedelta(seconds=5)
_SET_FOR = "ork tick, set for "
_NO_SYSTEMD = "run Ork where systemd is the service manager, or set `alarm: none` and call `ork tick` from cron"


def utc_now() -> datetime:
    return datetime.now(UTC)


class SystemdTimers:
    """The units of one project. `environ` has Ork's own settings, which its ticks get too."""

    longest = LONGEST

    def __init__(self, root: str, environ: Mapping[str, str], now: Callable[[], datetime] = utc_now) -> None:
        self._root = root
        self._environ = environ
        self._now = now
        self._scope = [] if os.getuid() == 0 else ["--user"]
        self._prefix = f"ork-{hashlib.sha256(root.encode()).hexdigest()[:10]}-"

    @property
    def describes(self) -> str:
        return f"{'user' if self._scope else 'system'} timers of systemd"

    def create(self, name: str, at: datetime) -> bool:
        now = self._now()
        if at - now < NEAR:
            when = f"--on-active={max(0.0, (at - now).total_seconds()):.3f}s"
        else:
            when = f"--on-calendar={at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        command = [
            "systemd-run", *self._scope, "--quiet", f"--unit={self._prefix}{name}", when,
            "--timer-property=AccuracySec=100ms", "--timer-property=RemainAfterElapse=no",
            "--property=KillMode=process", "--property=CollectMode=inactive-or-failed",
            f"--description={_SET_FOR}{at.isoformat()} at {now.isoformat()}",
            f"--working-directory={self._root}", *self._settings(), sys.executable, "-m", "ork", "tick",
        ]  # fmt: skip
        done = self._run(command)
        if done.returncode == 0:
            return True
        if "already" in done.stderr:  # a unit of this name is loaded, or a fragment of it exists
            return False
        raise self._refused(done)

    def delete(self, name: str) -> None:
        done = self._run(["systemctl", *self._scope, "stop", f"{self._prefix}{name}.timer"])
        if done.returncode != 0 and "not loaded" not in done.stderr:
            raise self._refused(done)

    def pending(self) -> Sequence[Timer]:
        shown = ["--property=Id,Description,ActiveState", f"{self._prefix}*.timer"]
        done = self._run(["systemctl", *self._scope, "show", "--all", *shown])
        if done.returncode != 0:
            raise self._refused(done)
        found = [self._timer(dict(line.split("=", 1) for line in block.splitlines() if "=" in line))
                 for block in done.stdout.split("\n\n")]  # fmt: skip
        return sorted((timer for timer in found if timer is not None), key=lambda timer: timer.at)

    def check(self) -> None:
        state = self._run(["systemctl", *self._scope, "is-system-running"]).stdout.strip()
        if state in ("", "offline", "unknown"):
            raise AlarmError(
                f"systemd does not run here ({state or 'no answer'}), so ticks are not called", hint=_NO_SYSTEMD
            )
        self._settings()

    def prepare(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _timer(self, properties: Mapping[str, str]) -> Timer | None:
        description = properties.get("Description", "")
        if not description.startswith(_SET_FOR) or properties.get("ActiveState") != "active":
            return None
        at, _, created = description.removeprefix(_SET_FOR).partition(" at ")
        name = properties["Id"].removeprefix(self._prefix).removesuffix(".timer")
        return Timer(name, datetime.fromisoformat(at), datetime.fromisoformat(created))

    def _settings(self) -> list[str]:
        """Ork's variables for the unit. All users can read a unit's properties, so none of them may hold a secret."""
        store = self._environ.get("ORK_STORE", "")
        if without_password(store) != store:
            raise UsageError(
                "ORK_STORE contains a password, which a timer unit would show to all users",
                hint="set ORK_STORE_FILE to a file that holds the URL",
            )
        names = sorted(name for name in self._environ if name.startswith("ORK_") and name != "ORK_TOKEN")
        return [f"--setenv={name}={self._environ[name]}" for name in names]

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=CALL_SECONDS
            )
        except FileNotFoundError:
            raise AlarmError(f"{command[0]} is not installed, so ticks are not called", hint=_NO_SYSTEMD) from None
        except subprocess.TimeoutExpired:
            raise AlarmError(f"{command[0]} does not answer", hint="systemctl status") from None

    def _refused(self, done: subprocess.CompletedProcess[str]) -> AlarmError:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return AlarmError(f"{self.describes} cannot be set: {said[0]}", hint=_NO_SYSTEMD)
