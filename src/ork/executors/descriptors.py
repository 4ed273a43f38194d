"""The limit of open files of this process. Every local attempt needs one descriptor."""

from __future__ import annotations

import resource
from contextlib import suppress
from functools import cache

MAX_FILES = 65_536


@cache
def raise_limit() -> tuple[int, int]:
    """Raise this process's limit as far as possible, once. Returns the old limits, for child processes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return soft, hard


def restore_limit(pid: int) -> None:
    """Give a child process the original limit, since programs may rely on a low one."""
    with suppress(OSError, ValueError):
        resource.prlimit(pid, resource.RLIMIT_NOFILE, raise_limit())


def limit_message() -> str:
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"this process may have {most:,} files open: raise `ulimit -n`, or run fewer attempts at once (`max_workers`)"
    )
