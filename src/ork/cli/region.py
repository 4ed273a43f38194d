"""A few lines at the bottom of the scrollback that are redrawn in place, without an alternate screen.

Permanent lines are written once above the region and become part of the scrollback.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import IO

from ork.cli.paint import Line, Palette, columns, plain

HIDE_CURSOR = "\x1b[?25l"
SHOW_CURSOR = "\x1b[?25h"
CLEAR_BELOW = "\x1b[J"


class Region:
    """A context manager: on exit, the region is erased and the cursor is shown again."""

    def __init__(self, stream: IO[str], palette: Palette, width: Callable[[], int]) -> None:
        self._stream = stream
        self._palette = palette
        self._width = width
        self._drawn: list[int] = []

    def __enter__(self) -> Region:
        self._send(HIDE_CURSOR)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._send(self._erasure() + SHOW_CURSOR)
        self._drawn = []

    def draw(self, permanent: Sequence[Line], live: Sequence[Line]) -> None:
        """Replaces the region: writes `permanent` above and `live` as the new region, in one write."""
        render = self._palette.render
        text = self._erasure() + "".join(render(spans) + "\n" for spans in (*permanent, *live))
        self._drawn = [columns(plain(spans)) for spans in live]
        self._send(text)

    def _erasure(self) -> str:
        if not self._drawn:
            return ""
        # If the window became narrower, each line drawn before may take several rows.
        width = max(self._width(), 1)
        rows = sum(max(1, -(-size // width)) for size in self._drawn)
        return f"\x1b[{rows}A\r{CLEAR_BELOW}"

    def _send(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
