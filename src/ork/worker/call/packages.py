"""What a plain start of the interpreter does for imports: site-packages, `.pth` files, `sitecustomize`. Done once.

A fork server does it for all its workers, if a trial in a child shows that nothing of it could harm a fork.
"""

from __future__ import annotations

import os
import sys
import time

TRIAL_SECONDS = 2.0
_SIGKILL = 9
_is_done = False


def use_packages() -> None:
    """Does it, unless whoever this process was forked from has done it."""
    global _is_done
    if _is_done:
        return
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    import site

    site.main()
    _is_done = True


def are_used() -> bool:
    return _is_done


class Trial:
    """Does it in a child, to see whether it starts threads or opens anything, which a fork would lose or share. Whoever
    has something else to do does that meanwhile."""

    def __init__(self) -> None:
        self._pid = os.fork()
        if self._pid == 0:
            code = 1
            try:
                before = os.listdir("/proc/self/fd")
                use_packages()
                is_harmless = len(os.listdir("/proc/self/task")) == 1 and os.listdir("/proc/self/fd") == before
                code = 0 if is_harmless else 1
            finally:
                os._exit(code)

    def is_passed(self) -> bool:
        """Waits for its end, but not for long."""
        return _ended_well(self._pid)


class PackageFingerprint:
    """Where packages come from: when one of these places changes, what has been done is out of date."""

    def __init__(self) -> None:
        self._paths = [folder for folder in sys.path if os.path.isdir(folder)]
        for folder in tuple(self._paths):
            # A file that comes or goes is seen by the folder's own time.
            self._paths += [f"{folder}/{name}" for name in os.listdir(folder) if name.endswith(".pth")]
        self._times = self._look()

    def is_current(self) -> bool:
        return self._look() == self._times

    def _look(self) -> list[int]:
        try:
            return [os.stat(path).st_mtime_ns for path in self._paths]
        except OSError:
            return []


def _ended_well(pid: int) -> bool:
    give_up_at = time.monotonic() + TRIAL_SECONDS
    while time.monotonic() < give_up_at:
        # Not `waitpid`: who will use this one, after a fork, finds loaded what it needs.
        ended, status, _ = os.wait4(pid, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.001)
    os.kill(pid, _SIGKILL)
    os.waitpid(pid, 0)
    return False
