"""Waiting for changes: one listen call, which costs a read for each document that changes and nothing while nothing does.

It watches the runs that change and `meta/wake`, which every other change that schedulers care about writes. Only who waits listens: a
tick does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from google.cloud.firestore_v1.types import firestore

from ork.state.firestore.database import WAKE, Database
from ork.state.firestore.documents import run_state
from ork.state.firestore.failures import TROUBLE
from ork.state.firestore.reads import NET
from ork.state.firestore.values import ListenRequest, moment_of
from ork.state.firestore.wire import Doc, Query

_FIELDS = ("row", "epoch", "n", "log", "c", "w")
_RUNS, _WAKE = 1, 2  # targets
_NEWEST = 100


class ChangeListener:
    """`_seen` is the time of the newest change that this handle has noticed. None: it has not looked yet. Who only looks, and
    does not wait, is told of everything that others have written before."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._seen: int | None = None
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def wait(self, timeout: float | None) -> bool:
        if timeout == 0:
            await self._look()
        elif self._seen is None:
            self._seen = self._db.wire.first_read
        if self._task is None and timeout != 0:
            self._task = asyncio.create_task(self._listen())
        if timeout != 0 and not self._news.is_set() and not self._db.others_changed:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._news.wait()
        happened = self._news.is_set() or self._db.others_changed
        self._news.clear()
        self._db.others_changed = False
        return happened

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _look(self) -> None:
        """The same as listening, once."""
        wire = self._db.wire
        where = () if self._seen is None else (("changed", ">=", moment_of(self._seen) - NET),)
        runs, doc = await wire.together(
            wire.query(Query("runs", where, ("-changed",), _NEWEST, _FIELDS)), wire.get(WAKE)
        )
        behind = self._seen = self._seen or 0
        for run in runs:
            self._notice_run(run, behind)
        if doc is not None:
            self._notice(doc.time, doc.fields["by"], behind)

    def _notice_run(self, doc: Doc, behind: int) -> None:
        state = run_state(doc)
        self._notice(state.changed, state.w.partition("-")[0], behind)

    def _notice(self, at: int, by: str, behind: int) -> None:
        if at > behind:
            self._seen = max(self._seen or 0, at)
            if by != self._db.me:
                self._news.set()

    async def _listen(self) -> None:
        """Until cancelled. After a failure it begins anew where it stopped."""
        failures = 0
        while True:
            try:
                answers = await self._db.wire.listen(self._requests())
                async for answer in answers:
                    self._handle(firestore.ListenResponse.pb(answer))
                    failures = 0
            except TROUBLE:
                failures += 1
            await self._db.wire.pause(min(failures, 6))

    async def _requests(self) -> AsyncIterator[Any]:
        wire = self._db.wire
        runs = ListenRequest(database=wire.resource)
        runs.add_target.target_id = _RUNS
        runs.add_target.query.parent = wire.root
        where = (("changed", ">=", moment_of(self._seen or 0) - NET),)
        runs.add_target.query.structured_query.CopyFrom(wire.structured(Query("runs", where)))
        yield runs
        wake = ListenRequest(database=wire.resource)
        wake.add_target.target_id = _WAKE
        wake.add_target.documents.documents.append(f"{wire.root}/{WAKE}")
        yield wake
        await asyncio.Event().wait()  # the call stays open

    def _handle(self, message: Any) -> None:
        if message.WhichOneof("response_type") != "document_change":
            return
        doc = self._db.wire.doc(message.document_change.document)
        if doc.path == WAKE:
            self._notice(doc.time, doc.fields["by"], self._seen or 0)
        else:
            self._notice_run(doc, self._seen or 0)
