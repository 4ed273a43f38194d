"""The pipes that a command speaks through: its standard output, and its standard error.

Pipes both: a program that opens /dev/stderr for writing would cut the log itself short. Their other ends stay open here,
too: that nothing more will be said is known by the end of the process, and nobody need be woken for it.
"""

from __future__ import annotations

import os

from ork.worker import process

_spare: Streams | None = None


class Streams:
    """OSError if there can be none."""

    __slots__ = ("complained", "said", "stderr", "stdout")

    def __init__(self) -> None:
        self.said, self.stdout = os.pipe()
        try:
            self.complained, self.stderr = os.pipe()
        except OSError:
            os.close(self.said)
            os.close(self.stdout)
            raise

    def all(self) -> tuple[int, int, int, int]:
        return self.said, self.stdout, self.complained, self.stderr

    def close(self) -> None:
        for descriptor in self.all():
            os.close(descriptor)


def taken() -> Streams:
    """Those that were kept, or new ones."""
    global _spare
    if _spare is None:
        return Streams()
    streams, _spare = _spare, None
    process.private.difference_update(streams.all())
    return streams


def keep(streams: Streams) -> None:
    """For the next command: nothing was said, and nobody is left who could speak."""
    global _spare
    if _spare is not None:
        taken().close()
    _spare = streams
    process.private.update(streams.all())
