"""What a worker that stays has to do for an attempt with a process of its own, and what the process that many calls share
has to do for each, counted in calls of functions."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ork.objects.documents import entries, joined, seal, token_hash
from ork.objects.json_text import dumps
from ork.objects.opening import open_objects

WORKER = """
import os, sys
from ork.worker.call import packages
from ork.worker.supervise import shim
from ork.worker.system.processes import AttemptTag
from ork.worker.pool.reusable_worker import ReusableWorker

shim.LISTEN_AFTER_SECONDS = 60.0  # to be counted takes its time
seen = []
resident = ReusableWorker(int(sys.argv[1]), AttemptTag(), packages.PackageFingerprint())
sys.setprofile(lambda frame, event, argument: seen.append(event))
resident.serve()
sys.setprofile(None)
print(seen.count("call"), seen.count("c_call"))
"""
# As it is in the shared process, without what is between the two.
SHARED = """
import os, sys
from mmap import mmap
from _socket import socketpair
from ork.worker.supervise.claim import process_entries
from ork.worker.pool.reusable_worker import _orders
from ork.worker.pool.shared_process import SharedProcess
from ork.worker.system.processes import own_process

class Unmarked:
    def write(self, attempt): pass

seen = []
message = sys.stdin.buffer.read()
out, (printed, speak) = os.dup(1), os.pipe()
os.dup2(speak, 1)
orders = [order.for_process() for order in _orders(message)]
answers = os.open("/dev/null", os.O_WRONLY)
server = SharedProcess(socketpair()[0], answers, 0, mmap(-1, 8), Unmarked(), process_entries(own_process()))
sys.setprofile(lambda frame, event, argument: seen.append(event))
for order in orders:
    server._perform(*order)
sys.setprofile(None)
assert server._calls == len(orders)
os.write(out, b"%d %d" % (seen.count("call"), seen.count("c_call")))
"""
TOKEN = "token"
SPEC: dict[str, Any] = {
    "run_id": "run",
    "workflow": "w",
    "index": None,
    "parallel_count": None,
    "number": 1,
    "scheduled_for": None,
    "kind": "command",
    "argv": ["/bin/true"],
    "script_dir": None,
    "inputs": None,
    "upstream": {},
    "env": {},
    "timeout": None,
    "heartbeat_seconds": 10.0,
    "fence_seconds": 45.0,
    "stop_grace_seconds": 10.0,
    "inline_limit": 1 << 16,
    "output_limit": 1 << 20,
    "durability": "normal",
    "news": None,
}


FUNCTION = {"kind": "python", "file": "light.py", "module": None, "function": "main"}


def calls_for_functions(count: int, folder: Path) -> tuple[int, int]:
    """Of Python's functions and of the interpreter's own, in a worker that gets so many tasks at once that call a function,
    each in a process of its own."""
    return _calls_for(_orders(count, folder, FUNCTION), count)


def calls_for_commands(count: int, folder: Path) -> tuple[int, int]:
    """The same for commands."""
    return _calls_for(_orders(count, folder), count)


def _calls_for(orders: bytes, count: int) -> tuple[int, int]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with (
        ours,
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(theirs.fileno())],
            env={**os.environ, "ORK_ATTEMPT_ID": "-" * 100},
            pass_fds=[theirs.fileno()],
            stdout=subprocess.PIPE,
            start_new_session=True,  # as a fork server does
        ) as worker,
    ):
        theirs.close()
        ours.send(orders)
        _wait_for_ends(ours, count)
        ours.shutdown(socket.SHUT_RDWR)
        said = worker.communicate()[0]
    own, of_the_interpreter = map(int, said.split())
    return own, of_the_interpreter


def calls_for_shared_calls(count: int, folder: Path) -> tuple[int, int]:
    """The same in the process that so many calls of a function share."""
    message = _orders(count, folder, FUNCTION)
    done = subprocess.run([sys.executable, "-c", SHARED], input=message, stdout=subprocess.PIPE, check=True)
    own, of_the_interpreter = map(int, done.stdout.split())
    return own, of_the_interpreter


def _orders(count: int, folder: Path, kind: Mapping[str, Any] | None = None) -> bytes:
    """As an executor sends them; their specs are written."""
    folder.mkdir()
    (folder / "light.py").write_text("def main():\n    return 1\n")
    names = [f"t{number}" for number in range(count)]
    documents = [_spec(name, folder, kind or {}) for name in names]
    attempts = [f"run/{name}/0/1" for name in names]
    objects = open_objects(f"journal:{folder}")
    positions = objects.put_specs(list(zip(attempts, documents, strict=True)))
    lines = []
    for name, position, document in zip(names, positions, documents, strict=True):
        place = {"objects": objects.url, "position": position}
        lines += [
            dumps({"attempt": f"run/{name}/0/1", "token": TOKEN, **place, "isolation": "fork"}).encode(),
            document,
        ]
    return b"\n".join(lines) + b"\n"


def _spec(name: str, folder: Path, kind: Mapping[str, Any]) -> bytes:
    own = {"v": 1, "attempt": f"run/{name}/0/1", "task": name}
    alike = {**SPEC, **kind, "root": str(folder)}
    return seal(joined(entries(own), entries(alike)), token_hash(TOKEN))


def _wait_for_ends(door: socket.socket, count: int) -> None:
    while count:
        words = door.recv(1 << 16).split(b"\n")
        assert words[0], "the worker has left"
        count -= sum(word.startswith((b"swift", b"over")) and b'"success"' in word for word in words)
