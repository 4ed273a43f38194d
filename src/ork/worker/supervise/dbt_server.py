"""A dbt that stays beside a reusable worker, as the worker sees it (`ork.worker.call.dbt_program` is what runs there).

Loading dbt and parsing a project takes seconds, a small model less than one. So the worker of a dbt command starts one process
that does both, and has it fork a process for each command. All are descendants of the worker, and end with it.
"""

from __future__ import annotations

import os
import socket

from ork.objects.json_text import dumps
from ork.worker.call.dbt_program import BEGUN
from ork.worker.call.other_interpreter import BOOTSTRAP
from ork.worker.supervise.process import Child
from ork.worker.system.processes import VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

OLDEST = (3, 11)
TAG_BYTES = 512
_PROGRAM = "ork.worker.call.dbt_program"
_CHUNK = 4096
_KILLED = 9

# Commands that need a parsed project, and their options that the kept process knows how to follow.
_VERBS = frozenset({"build", "run", "seed", "snapshot", "test"})
_PARSING = frozenset({"--project-dir", "--profiles-dir", "--target"})  # with a value; for the parser, too
_OTHERS = frozenset({"--select", "--indirect-selection", "--log-level-file"})
_SWITCHES = frozenset({"--no-use-colors", "--full-refresh"})
_INTO = "--target-path"


def python_of(program: str) -> str | None:
    """The interpreter of a `dbt` that has a programmatic runner and can run our code; None for any other program."""
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(program)))
    try:
        names = os.listdir(f"{prefix}/lib")
    except OSError:
        return None
    for name in names:
        major, _, minor = name.removeprefix("python").partition(".")
        if major == "3" and minor.isdigit() and (3, int(minor)) >= OLDEST:
            python = f"{prefix}/bin/{name}"
            has_runner = os.path.isfile(f"{prefix}/lib/{name}/site-packages/dbt/cli/main.py")
            if has_runner and os.access(python, os.X_OK):
                return python
    return None


def options_of_parser(words: Sequence[str]) -> list[str] | None:
    """The options for parsing the project of a dbt command, which is given as the words after `dbt`. None if the command has others
    than those that tasks of an import have: then it cannot be given a parsed project."""
    found: list[str] = []
    verbs = 0
    rest = iter(words)
    for word in rest:
        if word in _PARSING:
            found += (word, next(rest, ""))
        elif word == _INTO:
            # Tasks of an import have a folder each, below one for what the parser keeps.
            into = next(rest, "")
            found += (word, os.path.dirname(into) or into)
        elif word in _OTHERS:
            next(rest, None)
        elif word in _VERBS:
            verbs += 1
        elif word not in _SWITCHES:
            return None
    return found if verbs == 1 and "--project-dir" in found else None


class DbtServer(Child):
    """`ends` says when a command has begun, and its wait status when it has ended. OSError if no process can be created."""

    stays = True

    def __init__(self, python: str, root: str, parsing: Sequence[str], env: dict[str, str]) -> None:
        self.key = python, root, list(parsing)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._orders = ours.detach()
        self.ends, end = os.pipe()
        orders = theirs.detach()
        self.has_begun = False  # the current command
        try:
            super().__init__(lambda _answer: _become(python, env, orders, end))
        except OSError:
            for descriptor in (self._orders, self.ends):
                os.close(descriptor)
            raise
        finally:
            os.close(orders)
            os.close(end)

    def is_fit_for(self, _spec: dict[str, Any]) -> bool:
        """It calls no functions."""
        return False

    def send(self, order: dict[str, Any], streams: Sequence[int]) -> bool:
        """Have a command performed. False if the process has ended."""
        self.has_begun = False
        handed = os.memfd_create("order")
        connection = socket.socket(fileno=os.dup(self._orders))
        try:
            with open(handed, "wb", closefd=False) as file:
                file.write(dumps(order).encode())
            os.lseek(handed, 0, os.SEEK_SET)
            socket.send_fds(connection, [b"."], [handed, *streams])
        except OSError:
            return False
        finally:
            connection.close()
            os.close(handed)
        return True

    def read_ends(self) -> int | None:
        """Read `ends`. Returns the wait status of the command, or that of this process if it has ended before; None if the command
        has only begun."""
        words = os.read(self.ends, _CHUNK)
        if not words:
            return self._own_end()
        if words.startswith(BEGUN):
            self.has_begun = True
            words = words[len(BEGUN) :]
        return int(words) if words else None

    def _own_end(self) -> int:
        try:
            found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            return _KILLED
        assert found is not None
        return found.si_status << 8 if found.si_code == os.CLD_EXITED else found.si_status

    def _close(self) -> None:
        super()._close()
        for descriptor in (self._orders, self.ends):
            os.close(descriptor)


def _become(python: str, env: dict[str, str], orders: int, end: int) -> NoReturn:
    for descriptor in (orders, end):
        os.set_inheritable(descriptor, True)
    argv = [python, "-S", "-E", BOOTSTRAP, _PROGRAM, str(orders), str(end)]
    os.execve(python, argv, {**env, VARIABLE: "-" * TAG_BYTES})
