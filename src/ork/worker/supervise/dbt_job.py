"""A dbt command in a reusable worker: performed by a dbt that stays, if that is possible."""

from __future__ import annotations

import os

from ork.worker.supervise.command import CommandJob
from ork.worker.supervise.dbt_server import DbtServer, options_of_parser, python_of
from ork.worker.supervise.log import Stream
from ork.worker.supervise.process import dismiss_waiting, keep, release_waiting, waiting
from ork.worker.supervise.status import Ending, failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class DbtJob(CommandJob):
    """Its process is forked by the kept dbt, which is part of the attempt until then: it is ended if the attempt is."""

    _server: DbtServer | None = None
    _printed: Stream | None = None

    @property
    def fork_server(self) -> int:  # type: ignore[override]
        return self._server.pid if self._server is not None and self._server.has_begun else 0

    def _start_process(self, argv: list[str], env: dict[str, str]) -> Ending | int:
        parsing, python = options_of_parser(argv[1:]), python_of(argv[0])
        if parsing is None or python is None:
            return super()._start_process(argv, env)
        order = self._order(argv, env, parsing)
        streams = self._make_streams()
        try:
            server = self._kept(python, parsing)
            if server is not None and not server.send(order, streams):
                server.dismiss()  # it ended while it was kept
                server = None
            if server is None:
                dismiss_waiting()
                server = DbtServer(python, self._spec["root"], parsing, env)
                server.send(order, streams)  # if it has ended already, that is how the attempt ends
        except OSError as error:
            return failed("start", f"no process could be made: {error.strerror}")
        assert self._log is not None
        self._server = server
        self._printed = self._log.attach(Stream(server.printed, self._log))
        return 0

    def _kept(self, python: str, parsing: list[str]) -> DbtServer | None:
        """The kept dbt, if it is that of the same project; it is no longer kept."""
        child = waiting()
        if not isinstance(child, DbtServer) or child.key != (python, self._spec["root"], parsing):
            return None
        release_waiting()
        return child

    def _order(self, argv: list[str], env: dict[str, str], parsing: list[str]) -> dict[str, Any]:
        root = self._spec["root"]
        values = dict(zip(parsing[::2], parsing[1::2], strict=True))
        watched = [os.path.join(root, values["--project-dir"])]
        profiles = values.get("--profiles-dir") or env.get("DBT_PROFILES_DIR") or f"{env.get('HOME', '/')}/.dbt"
        watched.append(os.path.join(root, profiles, "profiles.yml"))
        return {
            "attempt": self._spec["attempt"],
            "argv": argv,
            "env": env,
            "folder": root,
            "parse": parsing,
            "watched": watched,
        }

    def pipes(self) -> dict[int, Callable[[], bool]]:
        pipes = super().pipes()
        if self._server is None or self._printed is None:
            return pipes
        return pipes | {self._server.ends: self._read_ends, self._printed.source: self._printed.empty}

    def _read_ends(self) -> bool:
        assert self._server is not None
        self.main_status = self._server.read_ends()
        return self.main_status is None

    def ending(self, wait_status: int) -> Ending:
        if self._server is not None and self.main_status is None:
            return failed("exit", "dbt's process ended, and nobody knows how")
        return super().ending(wait_status)

    def clean(self) -> None:
        server, self._server = self._server, None
        super().clean()
        if server is None:
            return
        # A command that was killed may have left its dbt in any state.
        if server.has_begun and self.main_status is not None and os.WIFEXITED(self.main_status):
            keep(server)
        else:
            server.dismiss()
