"""Sends the alerts in the store, without delaying the scheduler's steps.

An alert that cannot be sent is retried with growing delays. If the process dies while sending, another one sends it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from ork.errors import StoreError, UnreadableError
from ork.model.notice import Notice
from ork.state.schedules import ScheduleStore
from ork.telemetry import Telemetry, TelemetryEvent

if TYPE_CHECKING:
    from ork.alerts.channels import Channel
    from ork.alerts.send import Secrets
    from ork.model.outbound import OutboundRule
    from ork.model.workflow import CompiledWorkflow

BATCH_SIZE = 8
HOLD_SECONDS = 120.0
FIRST_RETRY_SECONDS = 10.0
MAX_RETRY_SECONDS = 3600.0
MAX_TRIES = 16  # about half a day
STORE_RETRY_SECONDS = 5.0
MIN_PAUSE_SECONDS = 0.5
OTHERS_SECONDS = 10.0


def _now() -> datetime:
    return datetime.now(UTC)


class Outbox:
    def __init__(
        self,
        store: ScheduleStore,
        channels: Mapping[str, Channel],
        secrets: Secrets,
        telemetry: Telemetry,
        *,
        rule: OutboundRule | None = None,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self._store = store
        self._channels = channels
        self._secrets = secrets
        self._telemetry = telemetry
        self._rule = rule
        self._now = now
        self._wake = asyncio.Event()
        self._checked_at = float("-inf")
        self._is_delivering = False
        self._is_finishing = False

    def wake(self) -> None:
        """Check soon: an alert may be due."""
        self._wake.set()

    def others_changed(self) -> None:
        """Another process wrote to the store, and may have died before sending its alerts."""
        if asyncio.get_running_loop().time() - self._checked_at > OTHERS_SECONDS:
            self._wake.set()

    async def run(self) -> None:
        """Run until cancelled."""
        due: datetime | None = None
        while True:
            await self._wait_until(due)
            self._wake.clear()
            self._is_delivering = True
            try:
                due = await self.deliver()
            except StoreError:
                due = self._now() + timedelta(seconds=STORE_RETRY_SECONDS)
            finally:
                self._is_delivering = False
            if self._is_finishing and not self._wake.is_set():
                return
            await asyncio.sleep(MIN_PAUSE_SECONDS)

    async def finish(self, task: asyncio.Task[None], seconds: float) -> None:
        """Stop the loop after sending what is due, for at most `seconds`.

        An alert being sent is not interrupted: it would count as ours until its hold expires.
        """
        self._is_finishing = True
        if not self._is_delivering and not self._wake.is_set():
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError, TimeoutError):
            await asyncio.wait_for(task, seconds)

    async def deliver(self) -> datetime | None:
        """Send everything that is due. Returns when the next alert is due."""
        self._checked_at = asyncio.get_running_loop().time()
        while notices := await self._store.take_alerts(BATCH_SIZE, self._now(), HOLD_SECONDS):
            await asyncio.gather(*(self._deliver_one(notice) for notice in notices))
        return await self._store.next_alert_at()

    async def _deliver_one(self, notice: Notice) -> None:
        from ork.alerts.channels import recipients
        from ork.alerts.text import with_detail

        workflow = await self._workflow_of(notice)
        notice = with_detail(notice, workflow)
        wanted = recipients(self._channels, workflow.alerts if workflow is not None else (), notice.kind)
        missing = [channel for channel in wanted if channel.name not in notice.sent]
        answers = await asyncio.gather(*(self._send(notice, channel) for channel in missing))
        failed = [f"{channel.name}: {why}" for channel, why in zip(missing, answers, strict=True) if why is not None]
        sent = [channel.name for channel, why in zip(missing, answers, strict=True) if why is None]
        retry_at = self._retry_at(notice) if failed else None
        for why in failed:
            self._telemetry.emit(TelemetryEvent.ALERT_FAILED, alert=notice.id, why=why, final=retry_at is None)
        for name in sent:
            self._telemetry.emit(TelemetryEvent.ALERT_SENT, alert=notice.id, to=name)
        await self._store.settle_alert(notice.id, sent, retry_at, "; ".join(failed) or None)

    async def _send(self, notice: Notice, channel: Channel) -> str | None:
        """None if it was sent, else the reason."""
        from ork.alerts.not_sent import NotSentError
        from ork.alerts.send import send
        from ork.model.outbound import OutboundRule

        work = partial(send, notice, channel, self._secrets, self._rule or OutboundRule())
        try:
            await asyncio.to_thread(work)
        except NotSentError as error:
            return await asyncio.to_thread(self._masked, str(error), channel)
        except Exception as error:  # an error of one channel must not affect the others
            return await asyncio.to_thread(self._masked, repr(error), channel)
        return None

    def _masked(self, why: str, channel: Channel) -> str:
        """The reason without the values of the channel's secrets: servers often repeat what they reject."""
        from ork.alerts.channels import secrets_of
        from ork.model.masking import Mask

        return Mask(value for name in secrets_of(channel) if (value := self._secrets(name))).text(why)

    async def _workflow_of(self, notice: Notice) -> CompiledWorkflow | None:
        """The workflow of the version that ran, or the current one if no run is involved."""
        run = None if notice.run is None else await self._store.get_run(notice.run)
        entry = None if run is not None else await self._store.get_workflow(notice.workflow)
        id = run.version if run is not None else entry.version if entry is not None else None
        try:
            version = None if id is None else await self._store.get_version(id)
        except UnreadableError:
            version = None  # channels for all workflows get it nevertheless
        return None if version is None else version.workflow

    def _retry_at(self, notice: Notice) -> datetime | None:
        if notice.tries >= MAX_TRIES:
            return None
        pause = min(MAX_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** (notice.tries - 1))
        return self._now() + timedelta(seconds=pause)

    async def _wait_until(self, due: datetime | None) -> None:
        seconds = None if due is None else max(0.0, (due - self._now()).total_seconds())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
