"""One file for a run's small documents. Every process appends to it, so a document costs a write instead of a file.

A record is a line, `<how><kind> <attempt> <length> <document>`, that begins with a mark byte and ends with a newline, so a
truncated record damages no other. Appending is atomic on a local disk: all processes see the lines in the same order,
and the first line of an attempt's gate wins. On other file systems there are files instead (see `ork.objects.opening`).
"""

from __future__ import annotations

import errno
import os
from time import monotonic

from ork.errors import RunDocumentsError
from ork.objects.regular import NotRegularError, open_regular
from ork.system import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BEGIN, END = b"\x1e", b"\n"
_ESCAPES = ((b"\x1f", b"\x1f0"), (BEGIN, b"\x1f1"), (END, b"\x1f2"))  # our documents contain none of these
PUT, PUT_IF_ABSENT, IN_A_FILE = b"=", b"+", b">"
LOOK_AGAIN_SECONDS = 0.002  # deleting a run and creating it again takes longer
_PIECE = 1 << 20  # longer than any line: documents that large are files
_LINE = 1 << 12
LARGEST_GAP = 1 << 24

# The index holds where each attempt's documents are, all three in one number: there may be 100,000 attempts.
_BITS = 40
_PLACE = (1 << _BITS) - 1
_GATE = b"gate.json"
_GATE_HEAD = BEGIN + PUT_IF_ABSENT + _GATE
_KINDS = {b"spec.json": 0, _GATE: 1, b"status.json": 2}
# What a line may begin with: whether an earlier line takes precedence, and where in that number its position is stored.
_HEADS = {
    BEGIN + how + kind: (how == PUT_IF_ABSENT, number * _BITS)
    for how in (PUT, PUT_IF_ABSENT, IN_A_FILE)
    for kind, number in _KINDS.items()
}

_NO_RECORD = [b"", b"", b"", b""]

descriptors: set[int] = set()
"""Of all journals open in this process: not for the user's processes."""


class Journal:
    """An existing journal file. OSError if it cannot be written or read.

    `is_durable`: what was written survives a power failure."""

    def __init__(self, path: str, *, is_durable: bool) -> None:
        self._is_durable = is_durable
        self._descriptor = _opened(path)
        descriptors.add(self._descriptor)
        self._process = os.getpid()
        self._places: dict[bytes, int] = {}
        self._begin = self._end = 0  # the part of the file that the index knows
        self._gap = 0  # number of bytes before the end that belong to no line
        self._piece, self._piece_at = b"", 0
        self._gates = _Gates()
        self._look_again_at = 0.0  # when to check that the file still exists
        self.launches = _Launches(self._descriptor)

    def close(self) -> None:
        descriptors.discard(self._descriptor)
        os.close(self._descriptor)

    @property
    def position(self) -> int:
        """The position up to which it has been read."""
        return self._end

    def skip_to(self, position: int) -> None:
        """Index only what comes after `position`. Earlier documents are still found, by a search."""
        if not self._begin <= position <= self._end:
            self._places.clear()
            self._begin = self._end = position
        self._gates.skip_to(position)

    def is_ready_for_gates(self) -> bool:
        """Whether it has skipped to a position and the file still exists, which is checked from time to time."""
        now = monotonic()
        if now >= self._look_again_at:
            self._look_again_at = now + LOOK_AGAIN_SECONDS
            if not self.is_there():
                return False
        return self._gates.begin > 0

    def begin(self) -> None:
        """Write an empty line, because position 0 cannot be skipped to."""
        self._write(END)

    def append(self, how: bytes, kind: bytes, attempt: bytes, document: bytes = b"") -> None:
        """Append one record. OSError if it could not be written completely: then it is ignored."""
        self._write(_record(how, kind, attempt, document))

    def append_first(self, kind: bytes, attempt: bytes, document: bytes) -> bool:
        """Append a record. True if it is the first of its kind and attempt, so that it counts. OSError as for `append`."""
        place, end = self._append_if_absent(kind, attempt, document)
        self._read_up_to(end)
        return self.known(kind, attempt) == place

    def append_gate(self, attempt: bytes, document: bytes) -> bool | None:
        """`append_first` for a gate that is not won before the skipped-to position. Other lines are not parsed, which keeps the
        cost low for a worker that uses the journal only for this. None: the file was deleted and created again, so the
        attempt does not belong to it."""
        if attempt in self._gates.places:
            return False
        place, end = self._append_if_absent(_GATE, attempt, document)
        return self._gates.is_first(attempt, place, end, self._descriptor)

    def _append_if_absent(self, kind: bytes, attempt: bytes, document: bytes) -> tuple[int, int]:
        """Returns the line's position and its end."""
        record = _record(PUT_IF_ABSENT, kind, attempt, document)
        self._write(record)
        end = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        return end - len(record) + 1, end

    def append_all(self, documents: Sequence[tuple[bytes, bytes, bytes]]) -> None:
        """Append several records in one write. OSError if not all of it could be written."""
        self._write(b"".join([_record(PUT, kind, attempt, document) for kind, attempt, document in documents]))

    def _write(self, records: bytes) -> None:
        if os.write(self._descriptor, records) < len(records):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self._is_durable:
            system.sync_data(self._descriptor)

    def find(self, kind: bytes, attempt: bytes) -> int:
        """Position of the line that counts; 0 if there is none in the indexed part (see `skip_to`). Reads new lines first."""
        self.read_on()
        return self.known(kind, attempt)

    def known(self, kind: bytes, attempt: bytes) -> int:
        """The same, as far as it had been read before."""
        return self._places.get(attempt, 0) >> _KINDS[kind] * _BITS & _PLACE

    def find_anywhere(self, kind: bytes, attempt: bytes) -> int:
        """`find`, including the part that was skipped."""
        self.read_on()
        return self.known_anywhere(kind, attempt)

    def known_anywhere(self, kind: bytes, attempt: bytes) -> int:
        """The same, as far as it had been read before."""
        if self._begin and not self.known(kind, attempt):
            self._search_before(kind, attempt)
        return self.known(kind, attempt)

    def knows(self, attempt: bytes) -> bool:
        """Whether the part that has been read contains any document of the attempt."""
        return attempt in self._places

    def at(self, place: int) -> tuple[bytes, bytes]:
        """The mode of the line at this position, and its document."""
        line = self._line(place)
        parts = line.split(b" ", 3)
        if len(parts) < 4:
            raise RunDocumentsError("the run's journal was changed where nobody changes it")
        document = parts[3]
        for plain, escaped in reversed(_ESCAPES):
            document = document.replace(escaped, plain)
        return line[:1], document

    def documents(self) -> Iterator[tuple[bytes, bytes]]:
        """Kind and attempt of every document."""
        there: dict[tuple[bytes, bytes], None] = {}
        for place, lines in _pieces(self._descriptor, 0, os.fstat(self._descriptor).st_size):
            for _, head, attempt in _records(lines, place):
                there[head[2:], attempt] = None
        return iter(there)

    def is_there(self) -> bool:
        """False if the file was deleted, and in a forked process, which would share its parent's file position."""
        return os.fstat(self._descriptor).st_nlink > 0 and self._process == os.getpid()

    def read_on(self) -> None:
        """Read everything that has been written so far."""
        size = os.fstat(self._descriptor).st_size
        if size < self._end:
            raise RunDocumentsError("the run's journal has become shorter: documents in it are lost")
        self._read_up_to(size)

    def _read_up_to(self, size: int) -> None:
        """RunDocumentsError at a large gap: it may have contained any attempt's gate, so nothing can be decided."""
        while self._end < size:
            if self._gap > LARGEST_GAP:
                raise RunDocumentsError(f"the run's journal has a gap before byte {self._end:,}: no worker wrote that")
            piece = os.pread(self._descriptor, min(_PIECE, size - self._end), self._end)
            whole = piece.rfind(END) + 1
            if not whole and len(piece) == _PIECE:
                self._end += max(piece.rfind(BEGIN), 0) or len(piece)  # too long for a line: noise, or a hole
                self._gap += len(piece)
                continue
            if not whole:  # the line is still being written, or was cut off and is the last one
                return
            self._gap = 0
            self._piece, self._piece_at = piece[:whole], self._end
            self._note(self._piece, self._end)
            self._end += whole

    def _note(self, lines: bytes, place: int) -> None:
        """Index the lines of a piece. Every worker does so for the lines of all others, so it must be fast."""
        places = self._places
        for begin, head, attempt in _records(lines, place):
            yields, shift = _HEADS[head]
            known = places.get(attempt, 0)
            if not known:
                places[attempt] = begin << shift
            elif not (yields and known >> shift & _PLACE):
                places[attempt] = known & ~(_PLACE << shift) | begin << shift

    def _search_before(self, kind: bytes, attempt: bytes) -> None:
        mark = b"%b %b " % (kind, attempt)
        for place, data in _pieces(self._descriptor, 0, self._begin):
            at = data.find(mark)
            while at >= 0:
                line = data[at - 2 : data.find(END, at)]
                if line.rfind(BEGIN) == 0:
                    self._note(line, place + at - 2)
                at = data.find(mark, at + 1)

    def _line(self, place: int) -> bytes:
        inside = place - self._piece_at
        if 0 <= inside < len(self._piece):
            return self._piece[inside : self._piece.index(END, inside)]
        data, size = b"", _LINE
        while END not in data and size <= _PIECE:
            data = os.pread(self._descriptor, size, place)
            size *= 8
        if END not in data:
            raise RunDocumentsError("the run's journal has become shorter: documents in it are lost")
        return data[: data.index(END)]


class _Gates:
    """Positions of gates in a part of the file: for each attempt the first one, which counts."""

    def __init__(self) -> None:
        self.places: dict[bytes, int] = {}
        self.begin = self._end = 0

    def skip_to(self, position: int) -> None:
        if not self.begin <= position <= self._end:
            self.places.clear()
            self.begin = self._end = position

    def is_first(self, attempt: bytes, place: int, end: int, descriptor: int) -> bool | None:
        """Whether our gate, written up to `end`, counts; None if the file was created again."""
        begin = place - len(BEGIN)
        if begin < self._end:
            return None
        if begin > self._end:
            for piece_at, lines in _pieces(descriptor, self._end, begin):
                self._note(lines, piece_at)
        self._end = end
        return self.places.setdefault(attempt, place) == place

    def _note(self, lines: bytes, place: int) -> None:
        """Note the gates of other workers."""
        at = lines.find(_GATE_HEAD)
        while at >= 0:
            end = lines.find(END, at)
            if end < 0:
                return  # it was cut off
            begin, (head, attempt, length, document) = _parts(lines[at:end])
            if head == _GATE_HEAD and length == b"%d" % len(document):
                self.places.setdefault(attempt, place + at + begin + len(BEGIN))
            at = lines.find(_GATE_HEAD, end)


class _Launches:
    """What a launcher of many attempts knows of a file. `at_gates`: the attempts whose gate is before `position`, and
    perhaps some whose line was truncated, since lines are not parsed for it. `told`: the attempts whose spec this process wrote."""

    def __init__(self, descriptor: int) -> None:
        self.at_gates: set[bytes] = set()
        self.told: set[bytes] = set()
        self.position = 0
        self._descriptor = descriptor

    def read_on(self) -> None:
        """Read up to the end of the last complete line."""
        size = os.fstat(self._descriptor).st_size
        while self.position < size:
            piece = os.pread(self._descriptor, min(_PIECE, size - self.position), self.position)
            end = piece.rfind(END) + 1
            if not end:
                return
            lines = piece[:end].split(_GATE + b" ")
            self.at_gates.update([line[: line.find(b" ")] for line in lines[1:]])
            self.position += end


def _opened(path: str) -> int:
    try:
        return open_regular(path, os.O_RDWR | os.O_APPEND)
    except NotRegularError as error:
        raise RunDocumentsError(f"the run's journal cannot be used: {error.strerror}") from error


def _pieces(descriptor: int, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield the bytes between two positions in bounded pieces that end with a line, each with its position. Data that is too
    long for a line is garbage; only its last mark may begin a line."""
    while begin < end:
        piece = os.pread(descriptor, min(_PIECE, end - begin), begin)
        if not piece:
            return
        if begin + len(piece) < end:
            piece = piece[: piece.rfind(END) + 1 or max(piece.rfind(BEGIN), 0) or len(piece)]
        yield begin, piece
        begin += len(piece)


def _record(how: bytes, kind: bytes, attempt: bytes, document: bytes) -> bytes:
    for plain, escaped in _ESCAPES:
        document = document.replace(plain, escaped)
    return b"%b%b%b %b %d %b%b" % (BEGIN, how, kind, attempt, len(document), document, END)


def _records(lines: bytes, place: int) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield position, head and attempt of each record. Anything else in the data is ignored."""
    for line in lines.split(END):
        begin, (head, attempt, length, document) = _parts(line)
        if head in _HEADS and length == b"%d" % len(document):
            yield place + begin + len(BEGIN), head, attempt
        place += len(line) + len(END)


def _parts(line: bytes) -> tuple[int, list[bytes]]:
    """Position and the four parts of a record. Data before the last mark is a truncated record."""
    begin = line.rfind(BEGIN)
    parts = (line[begin:] if begin > 0 else line).split(b" ", 3)
    return begin, parts if len(parts) == 4 else _NO_RECORD
