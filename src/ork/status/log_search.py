"""Searches logs for a literal text, and indexes their lines. One pass over the log in pieces, bounded in time and hits."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import NamedTuple

from ork.model.ids import AttemptKey
from ork.objects.attempt_documents import AttemptDocuments

PIECE = 1 << 20
LONGEST_LINE = 4 << 20
"""A longer line is searched in parts of this size, so that memory stays bounded."""
SHOWN_BYTES = 1000
_NEWLINE = re.compile(b"\n")


class Hit(NamedTuple):
    """A line with the text. Lines count from 1; `offset` is the byte at which the shown text starts."""

    line: int
    offset: int
    text: str


class LogHits(NamedTuple):
    """`total` lines have the text, of which the first are in `hits`. `is_complete` is False if time ran out at the byte
    `searched`."""

    hits: list[Hit]
    total: int
    searched: int
    is_complete: bool


class LineIndex(NamedTuple):
    """The byte offsets of the lines 1, 1 + every, 1 + 2 * every…; `lines` and `size` of the part that was read."""

    offsets: list[int]
    lines: int
    size: int
    is_complete: bool


def index_lines(objects: AttemptDocuments, attempt: AttemptKey, every: int, seconds: float) -> LineIndex:
    """The offsets of every n-th line. A last line without a line break counts."""
    until, offsets, lines, size, is_open = time.monotonic() + seconds, [0], 0, 0, False
    for piece in _pieces(objects, attempt):
        for found in _NEWLINE.finditer(piece):
            lines += 1
            if lines % every == 0:
                offsets.append(size + found.end())
        size += len(piece)
        is_open = not piece.endswith(b"\n")
        if time.monotonic() > until:
            return LineIndex(offsets, lines + is_open, size, False)
    if offsets[-1] >= size and len(offsets) > 1:
        offsets.pop()  # no line starts at the end
    return LineIndex(offsets, lines + is_open, size, True)


def search_log(
    objects: AttemptDocuments, attempt: AttemptKey, text: str, most_hits: int, until: float, ignore_case: bool = False
) -> LogHits:
    """The lines that contain the text, until `time.monotonic()` is `until`."""
    wanted = text.encode("utf-8", "surrogatepass")
    # Searching a lower-case copy is several times faster than a pattern that ignores case.
    wanted = wanted.lower() if ignore_case else wanted
    search = re.compile(re.escape(wanted)).search
    hits: list[Hit] = []
    count, line, start = 0, 1, 0
    last = 0  # the last line with a hit: a long line is searched in parts
    for block in _blocks(objects, attempt, len(wanted) - 1):
        at = lines_at = 0
        within = block.data.lower() if ignore_case else block.data
        while (found := search(within, at)) is not None:
            line += block.data.count(b"\n", lines_at, found.start())
            lines_at = found.start()
            if line != last:
                count, last = count + 1, line
                if len(hits) < most_hits:
                    hits.append(_hit(block.data, found.start(), line, start))
            at = block.data.find(b"\n", found.end())
            if at < 0:
                break
        line += block.data.count(b"\n", lines_at, block.done)
        start += block.done
        if time.monotonic() > until and not block.is_last:
            return LogHits(hits, count, start, False)
    return LogHits(hits, count, start, True)


def _hit(data: bytes, at: int, line: int, start: int) -> Hit:
    """The line around the place, or the part of a long line that begins shortly before it."""
    first = data.rfind(b"\n", 0, at) + 1
    if at - first > SHOWN_BYTES // 2:
        first = at - SHOWN_BYTES // 2
    end = data.find(b"\n", at)
    shown = data[first : min(first + SHOWN_BYTES, end if end >= 0 else len(data))]
    return Hit(line, start + first, shown.decode("utf-8", "replace"))


class _Block(NamedTuple):
    """Bytes to search; the next block starts after the first `done` of them."""

    data: bytes
    done: int
    is_last: bool


def _blocks(objects: AttemptDocuments, attempt: AttemptKey, overlap: int) -> Iterator[_Block]:
    """The log in blocks that end with a line, or in the middle of one that is too long; these overlap."""
    rest = b""
    for piece in _pieces(objects, attempt):
        rest += piece
        end = rest.rfind(b"\n") + 1
        if not end and len(rest) >= LONGEST_LINE:
            yield _Block(rest, len(rest) - overlap, False)
            rest = rest[len(rest) - overlap :]
        elif end:
            yield _Block(rest[:end], end, False)
            rest = rest[end:]
    yield _Block(rest, len(rest), True)


def _pieces(objects: AttemptDocuments, attempt: AttemptKey) -> Iterator[bytes]:
    offset = 0
    while data := objects.read_log(str(attempt), offset, PIECE):
        yield data
        offset += len(data)
