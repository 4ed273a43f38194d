"""Publishes the pages of the web UI after runs have ended: `ui: {publish: …}` in ork.yaml.

The work is `ork ui export` in a process of its own, with low priority and a time limit, so that it neither delays nor fails
a scheduler. A note in the store says whether something has changed and who is at work: so ticks on different machines
publish once, and not more often than they should.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ork.errors import OrkError, StoreUnavailableError
from ork.model.publishing import NOTE, PublishConfig, PublishState, state_of, state_text

if TYPE_CHECKING:
    from ork.settings import Settings
    from ork.state.store import StateStore

LIMIT_SECONDS = 300.0
_SPARE = timedelta(seconds=10)
_TRIES = 20
_PRIORITY = 10
_LONGEST_PROBLEM = 500


class Publisher:
    """One target of one installation."""

    def __init__(self, settings: Settings, store: StateStore, config: PublishConfig) -> None:
        self._settings = settings
        self._store = store
        self._config = config

    async def state(self) -> PublishState:
        return state_of(await self._store.read_note(NOTE), self._config.to)

    async def want(self) -> None:
        """Something has changed that is not published yet."""
        await self._change(lambda state: state.is_wanted_at(_now()))

    async def due(self) -> datetime | None:
        """When to publish; None if nothing has changed."""
        return (await self.state()).due(self._config.every)

    async def publish(self, seconds: float = LIMIT_SECONDS) -> datetime | None:
        """Publishes if it is due and nobody else is at it. Returns when it is due again."""
        if not await self._claim(seconds):
            return await self.due()
        try:
            said, problem = await self._export(seconds)
        except BaseException:  # this process ends: the next one does it
            with contextlib.suppress(OrkError):
                await self._change(lambda state: state.ended(_now(), "", "interrupted"))
            raise
        ended = await self._change(lambda state: state.ended(_now(), said, problem))
        return ended.due(self._config.every)

    async def _claim(self, seconds: float) -> bool:
        text, now = await self._store.read_note(NOTE), _now()
        state = state_of(text, self._config.to)
        due = state.due(self._config.every)
        if due is None or due > now:
            return False
        claimed = state.claimed_until(now + timedelta(seconds=seconds) + _SPARE)
        return await self._store.swap_note(NOTE, text, state_text(claimed))

    async def _change(self, change: Callable[[PublishState], PublishState]) -> PublishState:
        for _ in range(_TRIES):
            text = await self._store.read_note(NOTE)
            before = state_of(text, self._config.to)
            after = change(before)
            if after == before and text is not None:
                return before
            if await self._store.swap_note(NOTE, text, state_text(after)):
                return after
        raise StoreUnavailableError("the note about publishing changes all the time")

    # ── the process ──────────────────────────────────────────────────────────────────────────────

    async def _export(self, seconds: float) -> tuple[str, str | None]:
        """What was written, and why it failed; None if it did not."""
        try:
            child = await asyncio.create_subprocess_exec(
                *self._command(),
                cwd=self._settings.root,
                env=self._environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            return "", f"`ork ui export` cannot be started: {error.strerror}"
        try:
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, child.pid, _PRIORITY)
            async with asyncio.timeout(seconds):
                output, errors = await child.communicate()
        except TimeoutError:
            return "", f"it took longer than {seconds:.0f} seconds"
        finally:
            if child.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                await child.wait()
        return ("", _problem(output, errors, child.returncode)) if child.returncode else (_said(output), None)

    def _command(self) -> list[str]:
        config = self._config
        since = [] if config.since is None else ["--since", f"{config.since:.0f}s"]
        public = ["--public"] if config.public else []
        choice = ["--runs", str(config.runs), "--logs", config.logs, *since, *public]
        return [sys.executable, "-m", "ork", "ui", "export", config.to, *choice, "--json"]

    def _environment(self) -> dict[str, str]:
        """The stores of this process; a password is not visible in an environment to other users."""
        environ = {name: value for name, value in self._settings.environ.items() if name != "ORK_SERVER"}
        return {**environ, "ORK_STORE": self._settings.store, "ORK_OBJECTS": self._settings.objects}


class BackgroundPublisher:
    """Publishes beside a scheduler that runs. `wake` is called when a run has ended."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher
        self._is_new = False
        self._work: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Also does what an earlier process has left to do."""
        if self._work is None or self._work.done():
            self._work = asyncio.get_running_loop().create_task(self._publish())

    def wake(self) -> None:
        self._is_new = True
        self.start()

    async def stop(self) -> None:
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)

    async def _publish(self) -> None:
        with contextlib.suppress(OrkError):  # the next run that ends is another chance
            while True:
                if self._is_new:
                    self._is_new = False
                    await self._publisher.want()
                due = await self._publisher.due()
                if due is None:
                    return
                await asyncio.sleep(max(0.0, (due - _now()).total_seconds()))
                await self._publisher.publish()


def publisher_of(settings: Settings, store: StateStore) -> Publisher | None:
    """None if ork.yaml names no place to publish to."""
    config = settings.project.ui if settings.project is not None else None
    return None if config is None or settings.server is not None else Publisher(settings, store, config)


def _now() -> datetime:
    return datetime.now(UTC)


def _said(output: bytes) -> str:
    try:
        found = json.loads(output)
        return f"{found['runs']:,} runs; {found['files']:,} files written, {found['unchanged']:,} unchanged"
    except (ValueError, LookupError, TypeError):
        return ""


def _problem(output: bytes, errors: bytes, status: int | None) -> str:
    """The error message of the command, or the last words of a process that could give none."""
    try:
        said = str(json.loads(output)["error"]["message"])
    except (ValueError, LookupError, TypeError):
        lines = [line for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
        said = lines[-1] if lines else f"`ork ui export` ended with status {status}"
    return said[:_LONGEST_PROBLEM]
