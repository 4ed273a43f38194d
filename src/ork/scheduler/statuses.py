"""The statuses of attempts: passed along by an executor, or read from the store, many at once."""

from __future__ import annotations

from collections.abc import Sequence

from ork.errors import DocumentError, ObjectsError
from ork.model.status import Status
from ork.model.task import Attempt
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.calls import Calls
from ork.scheduler.reading import checked_status, if_new, read_statuses
from ork.scheduler.watched import Watched
from ork.telemetry import Telemetry, TelemetryEvent


class Statuses:
    """A document that is not the attempt's own counts as none, and is reported."""

    def __init__(self, objects: AttemptDocuments, telemetry: Telemetry) -> None:
        self._objects = objects
        self._calls = Calls(objects)
        self._telemetry = telemetry

    async def of_all(self, due: Sequence[Watched]) -> list[tuple[Watched, Status | ObjectsError | None, bool]]:
        """The status of each, and whether an executor passed it along. What was not is read for all of them at once.
        ObjectsError: it cannot be read now."""
        reported = [self._take_reported(watched) for watched in due]
        unread = [watched.attempt for watched, (status, _) in zip(due, reported, strict=True) if status is None]
        stored = iter(await self._read(unread) if unread else ())
        return [
            (watched, next(stored) if status is None else status, was_reported)
            for watched, (status, was_reported) in zip(due, reported, strict=True)
        ]

    async def newest(self, attempt: Attempt) -> Status | None:
        """The stored status, unless it is older than what is known of the attempt. ObjectsError: it cannot be read now."""
        (status,) = await self._read([attempt])
        if isinstance(status, ObjectsError):
            raise status
        return None if status is None else if_new(status, attempt)

    def _take_reported(self, watched: Watched) -> tuple[Status | None, bool]:
        """The status that an executor passed along, if it can be used, and whether it passed one along."""
        reported, watched.reported = watched.reported, None
        if reported is None or isinstance(reported, Status):
            return reported, reported is not None
        try:
            return checked_status(reported, watched.attempt), True
        except DocumentError as problem:
            self._refuse(watched.attempt, problem)
            return None, True

    async def _read(self, attempts: Sequence[Attempt]) -> list[Status | ObjectsError | None]:
        read = await self._calls.call(read_statuses, self._objects, attempts)
        for number, status in enumerate(read):
            if isinstance(status, DocumentError):
                self._refuse(attempts[number], status)
                read[number] = None
        return read

    def _refuse(self, attempt: Attempt, problem: DocumentError) -> None:
        self._telemetry.emit(TelemetryEvent.DOCUMENT_REFUSED, attempt=attempt.key, why=problem.message)
