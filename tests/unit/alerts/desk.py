"""A desk whose notices a test sends, and a post office that takes letters."""

from __future__ import annotations

import asyncio
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ork.alerts.channels import read_channels
from ork.alerts.outbox import Outbox
from ork.core.effects import Alert
from ork.model.ids import TaskKey
from ork.model.outbound import OutboundRule, parse_allowed
from ork.model.run import RunStatus
from ork.model.task import Failure, FailureKind
from ork.state.memory import MemoryStore
from ork.telemetry import Telemetry
from tests.conformance.state_samples import ANN, NOW, ended, owned_run, version

LOOPBACK = OutboundRule((parse_allowed("127.0.0.0/8"),))


class Desk:
    """A store with one failed run, and an outbox whose clock the test moves."""

    def __init__(self, alerts: dict[str, Any], named: tuple[str, ...] = ("ops",), **options: Any) -> None:
        self.now = NOW
        self.store = MemoryStore()
        self.telemetry = Telemetry()
        self.secrets = {"HOOK": "unset"}
        self._named = named
        allow = {"rule": LOOPBACK, **options}
        self.outbox = Outbox(
            self.store, read_channels(alerts), self.secrets.get, self.telemetry, now=lambda: self.now, **allow
        )

    async def fail(self) -> None:
        of = version(alerts=self._named)
        await self.store.save_version(of, origin=None, now=NOW)
        claimed = await owned_run(self.store, of=of)
        broken = Failure(FailureKind.EXIT, "exited with 1")
        alerts = (Alert(TaskKey("load"), broken), Alert(None, broken))
        await self.store.commit(ANN, [ended(claimed, RunStatus.FAILED, alerts=alerts)], NOW)

    def deliver(self) -> Any:
        async def work() -> Any:
            return await self.outbox.deliver()

        return asyncio.run(work())


def desk(alerts: dict[str, Any], **options: Any) -> Desk:
    async def make() -> Desk:
        made = Desk(alerts, **options)
        await made.fail()
        return made

    return asyncio.run(make())


@contextmanager
def mail_server() -> Iterator[tuple[int, list[str]]]:
    """Just enough of SMTP, over a real socket."""
    letters: list[str] = []

    class Session(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 here")
            while line := self.rfile.readline().decode().strip():
                verb = line[:4].upper()
                if verb == "DATA":
                    self._say("354 go on")
                    letters.append(self._letter())
                self._say("221 bye" if verb == "QUIT" else "250 fine")
                if verb == "QUIT":
                    return

        def _letter(self) -> str:
            lines: list[str] = []
            while (line := self.rfile.readline().decode()) != ".\r\n":
                lines.append(line)
            return "".join(lines)

        def _say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield server.server_address[1], letters
        finally:
            server.shutdown()
