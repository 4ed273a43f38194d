"""The statuses of attempts: reported by an executor, or read from the object store in one batch."""

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
    """A document that the attempt did not sign counts as missing, and an event is emitted."""

    def __init__(self, objects: AttemptDocuments, telemetry: Telemetry) -> None:
        self._objects = objects
        self._calls = Calls(objects)
        self._telemetry = telemetry

    async def of_all(self, due: Sequence[Watched]) -> list[tuple[Watched, Status | ObjectsError | None, bool]]:
        """The status of each attempt, and whether an executor reported it. The others are read in one batch. ObjectsError:
        it cannot be read now."""
        reported = [self._take_reported(watched) for watched in due]
        unread = [watched.attempt for watched, (status, _) in zip(due, reported, strict=True) if status is None]
        stored = iter(await self._read(unread) if unread else ())
        return [
            (watched, next(stored) if status is None else status, was_reported)
            for watched, (status, was_reported) in zip(due, reported, strict=True)
        ]

    async def newest(self, attempt: Attempt) -> Status | None:
        """The stored status, or None if it is older than the attempt's row. ObjectsError: it cannot be read now."""
        (status,) = await self._read([attempt])
        if isinstance(status, ObjectsError):
            raise status
        return None if status is None else if_new(status, attempt)

    def _take_reported(self, watched: Watched) -> tuple[Status | None, bool]:
        """The status that an executor reported, if it is valid, and whether it reported one."""
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
