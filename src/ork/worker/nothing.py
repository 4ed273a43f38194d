"""Tasks that do nothing (see `ork.worker.rehearsal`)."""

from __future__ import annotations


def main() -> int:
    return 1


def same(number: int) -> int:
    return number
