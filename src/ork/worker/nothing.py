"""A task that does nothing (see `ork.worker.rehearsal`)."""

from __future__ import annotations


def main() -> int:
    return 1
