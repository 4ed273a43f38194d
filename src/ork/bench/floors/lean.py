"""The floors: the same work without an engine, run as a script in an interpreter that has imported almost nothing.

    python -I -S lean.py chain|fanout|commands|interpreters|shared|engine|latency COUNT FOLDER
    python -I lean.py chain|fanout|shared COUNT FOLDER FILE

The second form loads the file first, and calls its `main` in each task. Both print the seconds it took, for `latency`
those of each single start. A forked task writes what the protocol requires of every attempt (a folder with gate, log,
output and status), and the rows of a task are committed before it starts and after it has ended. Measured work can come
close to these floors, but never below them.
"""

from __future__ import annotations

import gc
import os
import sqlite3
import sys
from collections.abc import Callable, Iterable
from time import perf_counter, sleep
from typing import Any

GATE = (
    b'{"v":1,"attempt":"r1/t/0/1","state":"started","pid":12345,"start_time":1234567,"signature":"' + b"0" * 64 + b'"}'
)
STATUS = b'{"v":1,"attempt":"r1/t/0/1","seq":2,"state":"success","output":{"size":1},"signature":"' + b"0" * 64 + b'"}'
FILE = 4  # its position among the arguments
IN_HAND = 4  # concurrent tasks per core
QUIET_SECONDS = 0.005  # between two starts: the listener is idle by then


class Tasks:
    """Tasks to run, with their rows in a separate store, written by as few statements as possible."""

    def __init__(self, folder: str, count: int) -> None:
        self.folder = folder
        self.names = [str(n) for n in range(count)]
        self.sql = named_statements(os.path.join(os.path.dirname(os.path.abspath(__file__)), "sqlite.sql"))
        self.db = sqlite3.connect(os.path.join(folder, "floor.db"), isolation_level=None)
        self.db.executescript(self.sql["pragmas"])
        self.db.executescript(self.sql["tables"])

    def created(self) -> None:
        self.write("create_task", names=self.names)

    def write(self, *statements: str, names: Iterable[str]) -> None:
        """Run the statements in one transaction."""
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
    """Run the tasks one after the other, each in a forked process."""
    for name in tasks.names:
        tasks.dispatched(name)
        os.waitpid(fork_task(tasks.folder, name), 0)
        tasks.finished(name)


def fanout(tasks: Tasks) -> None:
    """Run several tasks per core at the same time, each in a forked process."""
    side_by_side(tasks, lambda name: fork_task(tasks.folder, name))


def commands(tasks: Tasks) -> None:
    """The same with a program that does nothing and writes no files."""
    environment = dict(os.environ)
    side_by_side(tasks, lambda _: os.posix_spawn("/bin/true", ["true"], environment))


def interpreters(tasks: Tasks) -> None:
    """The same with a new, bare interpreter for each task."""
    argv, environment = [sys.executable, "-I", "-S", "-c", "pass"], dict(os.environ)
    side_by_side(tasks, lambda _: os.posix_spawn(sys.executable, argv, environment))


def shared(tasks: Tasks) -> None:
    """Run the tasks in existing processes, one per core, each with a pipe in each direction: no process per task."""
    import select

    workers = [Worker() for _ in range(os.cpu_count() or 1)]
    owners = {worker.answers: worker for worker in workers}
    waiting, open_tasks = tasks.names[::-1], len(tasks.names)
    while open_tasks:
        wave = [(worker, waiting.pop()) for worker in workers for _ in range(min(worker.room, len(waiting)))]
        if wave:
            tasks.dispatched(*(name for _, name in wave))
            for worker, name in wave:
                worker.give(name)
        readable = select.select(list(owners), (), ())[0]
        ended = [name for descriptor in readable for name in owners[descriptor].take()]
        tasks.finished(*ended)
        open_tasks -= len(ended)
    for worker in reversed(workers):  # later workers have inherited the pipes of earlier ones
        worker.end()


class Worker:
    """A process that replies to each line with the same line, after calling a function that does nothing."""

    def __init__(self) -> None:
        orders, self.orders = os.pipe()
        self.answers, answers = os.pipe()
        self.room = IN_HAND
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self.orders)
            with os.fdopen(orders, "rb", buffering=0) as given:
                while data := given.read(1 << 16):
                    os.write(answers, b"".join(light_task(name) for name in data.splitlines(keepends=True)))
            os._exit(0)
        os.close(orders)
        os.close(answers)

    def give(self, name: str) -> None:
        self.room -= 1
        os.write(self.orders, name.encode() + b"\n")

    def take(self) -> list[str]:
        # Few and short enough for one write in each direction, so that no line is read in two parts.
        names = os.read(self.answers, 1 << 16).decode().split()
        self.room += len(names)
        return names

    def end(self) -> None:
        os.close(self.orders)
        os.waitpid(self._pid, 0)


def light_task(name: bytes) -> bytes:
    task()
    return name


def task() -> object:
    return 1


def latency(tasks: Tasks) -> list[float]:
    """Seconds from a message of another process to the first line of a task: a wake-up, a commit, a fork and the
    gate."""
    import socket

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    asker = os.fork()
    if asker == 0:
        for _ in tasks.names:
            sleep(QUIET_SECONDS)
            theirs.send(str(perf_counter()).encode())
            theirs.recv(1)
        os._exit(0)
    found, outcome = [], os.pipe()
    for name in tasks.names:
        asked = float(ours.recv(64))
        tasks.dispatched(name)
        if os.fork() == 0:
            os.mkdir(os.path.join(tasks.folder, name))
            write_file(os.path.join(tasks.folder, name, "gate.json"), GATE)
            os.write(outcome[1], str(perf_counter() - asked).encode())
            os._exit(0)
        found.append(float(os.read(outcome[0], 64)))
        tasks.finished(name)
        ours.send(b"!")
    os.waitpid(asker, 0)
    return found


def engine(tasks: Tasks) -> None:
    """Write the rows only: every task is dispatched, running and finished, a hundred per transaction."""
    for first in range(0, len(tasks.names), 100):
        batch = tasks.names[first : first + 100]
        tasks.dispatched(*batch)
        tasks.write("start_task", "start_attempt", names=batch)
        tasks.finished(*batch)


def side_by_side(tasks: Tasks, start: Callable[[str], int]) -> None:
    room = IN_HAND * (os.cpu_count() or 1)
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
    """Wait for one child, and collect all others that have ended."""
    ended = [alive.pop(os.waitpid(-1, 0)[0])]
    while alive and (pid := os.waitpid(-1, os.WNOHANG)[0]):
        ended.append(alive.pop(pid))
    return ended


def fork_task(folder: str, name: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    task()
    leave_documents(os.path.join(folder, name))
    os._exit(0)


def leave_documents(folder: str) -> None:
    os.mkdir(folder)
    write_file(folder + "/gate.json", GATE)
    write_file(folder + "/log", b"")
    for name, data in (("output", b"1"), ("status", STATUS)):
        write_file(f"{folder}/{name}.tmp", data)
        os.replace(f"{folder}/{name}.tmp", f"{folder}/{name}.json")


def write_file(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.write(descriptor, data)
    os.close(descriptor)


FLOORS: dict[str, Callable[[Tasks], None]] = {
    "chain": chain,
    "fanout": fanout,
    "commands": commands,
    "interpreters": interpreters,
    "shared": shared,
    "engine": engine,
}


def load_task(file: str) -> None:
    global task
    loaded: dict[str, Any] = {}
    with open(file, encoding="utf-8") as source:
        exec(source.read(), loaded)
    task = loaded["main"]
    # Otherwise collections in the forked processes copy most of the memory.
    gc.collect()
    gc.freeze()


def main() -> None:
    name, count, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if len(sys.argv) > FILE:
        load_task(sys.argv[FILE])
    tasks = Tasks(folder, count)
    begin = perf_counter()
    tasks.created()
    if name == "latency":
        print(*latency(tasks))
    else:
        FLOORS[name](tasks)
        print(perf_counter() - begin)


if __name__ == "__main__":
    main()
