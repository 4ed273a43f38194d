"""How many files this process may have open: every attempt that runs here costs it one."""

from __future__ import annotations

import resource
from contextlib import suppress
from functools import cache

MAX_FILES = 65_536


@cache
def raise_limit() -> tuple[int, int]:
    """Raises this process's own limit as far as it may, once; what it was before is for the processes it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return soft, hard


def restore_limit(pid: int) -> None:
    """Programs may rely on a low limit: one that this process starts gets the one that we were started with."""
    with suppress(OSError, ValueError):
        resource.prlimit(pid, resource.RLIMIT_NOFILE, raise_limit())


def limit_message() -> str:
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"this process may have {most:,} files open: raise `ulimit -n`, or run fewer attempts at once (`max_workers`)"
    )
