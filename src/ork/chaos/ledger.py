"""Reads the ledger that attempts write (`copied/recorded.py`): what really started, ended and overlapped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import NamedTuple

RECORDED = "recorded.py"
STARTS, ENDS = "start", ("end", "failed")


class Entry(NamedTuple):
    """One line. `what` is start, end, failed or overlap; `attempt` is `run/task/index/number`. In a container, `pid` is 0."""

    what: str
    attempt: str
    pid: int
    at: float

    @property
    def run(self) -> str:
        return self.attempt.partition("/")[0]


class Ledger:
    """The ledger in a folder. Each line is read once, so that looking often stays cheap."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries: list[Entry] = []
        self.working: dict[str, int] = {}  # the attempts that have started and not ended, with their pids
        self.ended: set[str] = set()
        self._offset = 0

    @classmethod
    def create(cls, folder: Path) -> Ledger:
        """A new ledger, writable for the users of containers and tasks."""
        folder.mkdir()
        folder.chmod(0o777)
        return cls(folder)

    def read(self) -> list[Entry]:
        """All entries until now, in the order in which they were written."""
        try:
            with open(self.folder / "ledger", "rb") as file:
                file.seek(self._offset)
                text = file.read()
        except FileNotFoundError:
            return self.entries
        whole = text[: text.rfind(b"\n") + 1]  # a line may be half written
        self._offset += len(whole)
        for entry in _parsed(whole.decode()):
            self.entries.append(entry)
            if entry.what == STARTS:
                self.working[entry.attempt] = entry.pid
            elif entry.what in ENDS:
                self.working.pop(entry.attempt, None)
                self.ended.add(entry.attempt)
        return self.entries

    def forget(self, pid: int) -> None:
        """The process was killed: nothing that it had started is at work any more."""
        self.working = {attempt: each for attempt, each in self.working.items() if each != pid}


def _parsed(text: str) -> Iterator[Entry]:
    for line in text.splitlines():
        what, attempt, pid, at = line.split(" ")
        yield Entry(what, attempt, int(pid), float(at))


def copy_recorder(folder: Path, name: str = RECORDED) -> Path:
    """Copies the program that records into a folder, and returns its path."""
    with resources.as_file(resources.files("ork.chaos.copied") / name) as source:
        shutil.copyfile(source, folder / name)
    return folder / name
