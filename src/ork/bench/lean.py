"""The floors: the same work with no engine at all, run as a script in an interpreter that has imported next to nothing.

    python -I -S lean.py chain|fanout|commands|interpreters|engine COUNT FOLDER    prints the seconds it took

A forked task leaves what the protocol asks of every attempt (a folder, gate, log, and a status that holds its
output), and the rows of a task are committed before it starts and after it ended. What is measured against these
floors can come close to them, never below.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Iterable
from time import perf_counter

GATE = (
    b'{"v":1,"attempt":"r1/t/0/1","state":"started","pid":12345,"start_time":1234567,"signature":"' + b"0" * 64 + b'"}'
)
STATUS = (
    b'{"v":1,"attempt":"r1/t/0/1","seq":2,"state":"success","output":{"inline":"1"},"signature":"' + b"0" * 64 + b'"}'
)


class Tasks:
    """Tasks to run, and their rows in a store of their own, in as few statements as they need."""

    def __init__(self, folder: str, count: int) -> None:
        self.folder = folder
        self.names = [str(n) for n in range(count)]
        self.sql = named_statements(os.path.join(os.path.dirname(os.path.abspath(__file__)), "floor.sql"))
        self.db = sqlite3.connect(os.path.join(folder, "floor.db"), isolation_level=None)
        self.db.executescript(self.sql["pragmas"])
        self.db.executescript(self.sql["tables"])

    def created(self) -> None:
        self.write("create_task", names=self.names)

    def write(self, *statements: str, names: Iterable[str]) -> None:
        """One transaction."""
        values = [(name,) for name in names]
        self.db.execute(self.sql["begin"])
        for statement in statements:
            self.db.executemany(self.sql[statement], values)
        self.db.execute(self.sql["commit"])

    def dispatched(self, *names: str) -> None:
        self.write("dispatch_task", "dispatch_attempt", names=names)

    def finished(self, *names: str) -> None:
        self.write("finish_task", "finish_attempt", names=names)


def named_statements(path: str) -> dict[str, str]:
    with open(path, encoding="utf-8") as file:
        blocks = file.read().split("-- name: ")[1:]
    return {name.strip(): text.strip() for name, _, text in (block.partition("\n") for block in blocks)}


def chain(tasks: Tasks) -> None:
    """One after the other, each in a forked process."""
    for name in tasks.names:
        tasks.dispatched(name)
        os.waitpid(fork_task(tasks.folder, name), 0)
        tasks.finished(name)


def fanout(tasks: Tasks) -> None:
    """As many at once as is good for this machine, each in a forked process."""
    side_by_side(tasks, lambda name: fork_task(tasks.folder, name))


def commands(tasks: Tasks) -> None:
    """The same with a program that does nothing; it leaves no files."""
    environment = dict(os.environ)
    side_by_side(tasks, lambda _: os.posix_spawn("/bin/true", ["true"], environment))


def interpreters(tasks: Tasks) -> None:
    """The same with a new, bare interpreter for each task."""
    argv, environment = [sys.executable, "-I", "-S", "-c", "pass"], dict(os.environ)
    side_by_side(tasks, lambda _: os.posix_spawn(sys.executable, argv, environment))


def engine(tasks: Tasks) -> None:
    """Rows alone: every task is dispatched, running and finished, a hundred to a transaction."""
    for first in range(0, len(tasks.names), 100):
        batch = tasks.names[first : first + 100]
        tasks.dispatched(*batch)
        tasks.write("start_task", "start_attempt", names=batch)
        tasks.finished(*batch)


def side_by_side(tasks: Tasks, start: Callable[[str], int]) -> None:
    room = 4 * (os.cpu_count() or 1)
    alive: dict[int, str] = {}
    begun = 0
    while begun < len(tasks.names) or alive:
        wave = tasks.names[begun : begun + room - len(alive)]
        if wave:
            tasks.dispatched(*wave)
            alive.update((start(name), name) for name in wave)
            begun += len(wave)
        tasks.finished(*reap(alive))


def reap(alive: dict[int, str]) -> list[str]:
    """Waits for one child and takes along whoever else has ended."""
    ended = [alive.pop(os.waitpid(-1, 0)[0])]
    while alive and (pid := os.waitpid(-1, os.WNOHANG)[0]):
        ended.append(alive.pop(pid))
    return ended


def fork_task(folder: str, name: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    leave_documents(os.path.join(folder, name))
    os._exit(0)


def leave_documents(folder: str) -> None:
    os.mkdir(folder)
    write_file(folder + "/gate.tmp", GATE)
    os.link(folder + "/gate.tmp", folder + "/gate.json")
    os.unlink(folder + "/gate.tmp")
    write_file(folder + "/log", b"")
    write_file(folder + "/status.tmp", STATUS)
    os.replace(folder + "/status.tmp", folder + "/status.json")


def write_file(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.write(descriptor, data)
    os.close(descriptor)


FLOORS: dict[str, Callable[[Tasks], None]] = {
    "chain": chain,
    "fanout": fanout,
    "commands": commands,
    "interpreters": interpreters,
    "engine": engine,
}


def main() -> None:
    name, count, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    tasks = Tasks(folder, count)
    begin = perf_counter()
    tasks.created()
    FLOORS[name](tasks)
    print(perf_counter() - begin)


if __name__ == "__main__":
    main()
