"""Threads that wait for a store which does not answer at once. Their number is bounded."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache

MOST_AT_ONCE = 64


def pool(use: str) -> ThreadPoolExecutor:
    """This process's threads for "calls", each of which may wait for several of those for "operations"."""
    return _made(use, os.getpid())


@cache
def _made(use: str, _process: int) -> ThreadPoolExecutor:
    """A forked process has none of its parent's threads."""
    return ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix=f"ork-objects-{use}")
