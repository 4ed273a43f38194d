"""Servers on a real store, SQLite and Postgres, for the tests of this folder."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.waiting import wait_until
from tests.postgres import fresh_database
from tests.serving import Served, serving

HELD = """
name: held
params: {n: {type: int, default: 1}}
tasks:
  a: {command: [sh, -c, 'echo begun >> ledger; while [ ! -e go ]; do sleep 0.05; done; echo 7']}
  b: {command: echo done, depends_on: [a]}
"""


class Place:
    """A folder with a store, where any number of servers may be started."""

    def __init__(
        self, folder: Path, environment: dict[str, str], stack: ExitStack, ork_cli: Callable[..., Any]
    ) -> None:
        self.folder = folder
        self.environment = environment
        self._stack = stack
        self._ork_cli = ork_cli

    def serve(self, *args: str) -> Served:
        return self._stack.enter_context(serving(self.folder, self.environment, *args))

    def ork(self, *args: str, code: int = 0) -> str:
        done: subprocess.CompletedProcess[str] = self._ork_cli(*args, cwd=self.folder, env=self.environment)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def begin(self) -> str:
        """A run whose first task has begun."""
        self.ork("deploy", "held.yaml")
        run = self.ork("trigger", "held").split()[0]
        wait_until(lambda: (self.folder / "ledger").exists())
        return run

    def finish(self, run: str) -> None:
        """Lets the task go on; it must have begun once."""
        (self.folder / "go").touch()
        self.ork("watch", run)
        assert (self.folder / "ledger").read_text() == "begun\n"


@pytest.fixture(params=["sqlite", "postgres"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, plain_environment: dict[str, str], ork_cli: Callable[..., Any]
) -> Iterator[Place]:
    (tmp_path / "held.yaml").write_text(HELD)
    with ExitStack() as stack:
        environment = dict(plain_environment)
        if request.param == "postgres":
            environment["ORK_STORE"] = stack.enter_context(fresh_database())
        yield Place(tmp_path, environment, stack, ork_cli)
        (tmp_path / "go").touch()
