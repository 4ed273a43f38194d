"""How many files this process may have open: every attempt that runs here costs it one."""

from __future__ import annotations

import resource
from contextlib import suppress
from functools import cache

MOST = 65_536


@cache
def make_room() -> tuple[int, int]:
    """Raises this process's own limit as far as it may, once; what it was before is for the processes it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return soft, hard


def leave_as_it_was(pid: int) -> None:
    """Programs may rely on a low limit: one that this process starts gets the one that we were started with."""
    with suppress(OSError, ValueError):
        resource.prlimit(pid, resource.RLIMIT_NOFILE, make_room())


def words() -> str:
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"this process may have {most:,} files open: raise `ulimit -n`, or run fewer attempts at once (`max_workers`)"
    )
