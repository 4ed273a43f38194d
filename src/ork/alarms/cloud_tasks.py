"""Timers as tasks of a Google Cloud Tasks queue: each is one POST to `/api/v1/tick`, with an identity token.

The client is Google's, on its REST transport; it is imported with the first call. Credentials are the ambient ones.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from ork.alarms.timers import Timer
from ork.errors import AlarmError, UsageError
from ork.model.alarm import AlarmConfig

if TYPE_CHECKING:
    from google.cloud.tasks_v2 import CloudTasksClient

LONGEST = timedelta(days=30)
CALL_SECONDS = 5.0
TRIES = 4
FIRST_PAUSE_SECONDS = 0.1
# The service cancels a call after this time and repeats it. Longer than a pass of `ork serve --on-request` takes.
DISPATCH_SECONDS = 120
TICK_PATH = "/api/v1/tick"
PAGE = 1000
_HINT = "see `ork doctor`; the identity of this process needs the roles Cloud Tasks Enqueuer, Viewer and Task Deleter"

T = TypeVar("T")


class CloudTasks:
    """A queue. `sleep` pauses between two tries of a call; by default until `close` at most."""

    longest = LONGEST

    def __init__(self, config: AlarmConfig, sleep: Callable[[float], object] | None = None) -> None:
        self._config = config
        self._closed = threading.Event()
        self._sleep = sleep or self._closed.wait
        self._opened: CloudTasksClient | None = None

    @property
    def describes(self) -> str:
        return f"Cloud Tasks queue {self._config.queue}"

    def create(self, name: str, at: datetime) -> bool:
        from google.api_core.exceptions import AlreadyExists, Conflict

        task = {
            "name": self._full(name),
            "schedule_time": at,
            "dispatch_deadline": timedelta(seconds=DISPATCH_SECONDS),
            "http_request": {
                "http_method": "POST",
                "url": self._config.url.rstrip("/") + TICK_PATH,
                "oidc_token": {
                    "service_account_email": self._config.service_account,
                    "audience": self._config.url.rstrip("/"),
                },
            },
        }
        try:
            self._call("create_task", {"parent": self._config.queue, "task": task})
        except (AlreadyExists, Conflict):
            return False
        return True

    def delete(self, name: str) -> None:
        from google.api_core.exceptions import NotFound

        try:
            self._call("delete_task", {"name": self._full(name)})
        except NotFound:
            return  # it was called, or removed before

    def pending(self) -> Sequence[Timer]:
        listed = self._call("list_tasks", {"parent": self._config.queue, "page_size": PAGE}, lambda pages: list(pages))
        return sorted((_timer(task) for task in listed), key=lambda timer: timer.at)

    def check(self) -> None:
        from google.cloud.tasks_v2 import Queue

        queue = self._call("get_queue", {"name": self._config.queue})
        if queue.state != Queue.State.RUNNING:
            raise AlarmError(
                f"the {self.describes} is {Queue.State(queue.state).name.lower()}, so ticks are not called",
                hint=f"gcloud tasks queues resume {self._config.queue}",
            )

    def prepare(self) -> None:
        self._client()

    def close(self) -> None:
        self._closed.set()
        if self._opened is not None:
            self._opened.transport.close()
            self._opened = None

    def _full(self, name: str) -> str:
        return f"{self._config.queue}/tasks/{name}"

    def _call(self, method: str, request: dict[str, Any], read: Callable[[Any], Any] = lambda answer: answer) -> Any:
        """Calls the service. Tries again while it is busy, or the answer was lost: every call here may be repeated."""
        client = self._client()
        from google.api_core import exceptions
        from google.auth.exceptions import GoogleAuthError

        busy = (exceptions.TooManyRequests, exceptions.ServerError, OSError)  # OSError: no answer
        answered = (exceptions.Conflict, exceptions.NotFound)
        pause = FIRST_PAUSE_SECONDS
        for attempt in range(1, TRIES + 1):
            try:
                return read(getattr(client, method)(request=request, timeout=CALL_SECONDS, retry=None))
            except busy as error:
                if attempt == TRIES:
                    raise AlarmError(f"{self.describes} does not answer: {_reason(error)}", hint=_HINT) from error
            except exceptions.NotFound as error:
                if method in ("create_task", "list_tasks", "get_queue"):
                    raise AlarmError(f"there is no {self.describes}", hint=_create_hint(self._config.queue)) from error
                raise
            except answered:
                raise
            except (exceptions.GoogleAPICallError, GoogleAuthError) as error:
                raise AlarmError(f"{self.describes} refuses: {_reason(error)}", hint=_HINT) from error
            self._sleep(pause)
            pause *= 2
        raise AssertionError("the last try returns or raises")

    def _client(self) -> CloudTasksClient:
        if self._opened is None:
            self._opened = _open(self._config.endpoint)
        return self._opened


def _open(endpoint: str | None) -> CloudTasksClient:
    try:
        from google.cloud.tasks_v2 import CloudTasksClient
        from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksRestTransport
    except ModuleNotFoundError as error:
        raise UsageError(
            f"an alarm by Cloud Tasks needs packages that are not installed: {error.name}",
            hint="pip install 'ork-orchestrator[gcp]'",
        ) from None
    if endpoint is None:
        from google.auth.exceptions import GoogleAuthError

        try:
            return CloudTasksClient(transport="rest")
        except GoogleAuthError as error:
            raise AlarmError(
                f"there are no Google credentials: {_reason(error)}", hint="gcloud auth application-default login"
            ) from error
    from google.auth.credentials import AnonymousCredentials

    parts = urlsplit(endpoint)
    transport = CloudTasksRestTransport(host=parts.netloc, url_scheme=parts.scheme, credentials=AnonymousCredentials())
    return CloudTasksClient(transport=transport)


def _timer(task: Any) -> Timer:
    at, created = (datetime.fromtimestamp(each.timestamp(), UTC) for each in (task.schedule_time, task.create_time))
    answer = task.last_attempt.response_status.message
    return Timer(task.name.rpartition("/")[2], at, created, is_called=task.dispatch_count > 0, last_answer=answer)


def _create_hint(queue: str) -> str:
    _, project, _, region, _, name = queue.split("/")
    return f"gcloud tasks queues create {name} --project {project} --location {region}"


def _reason(error: Exception) -> str:
    return str(getattr(error, "message", "") or error).splitlines()[0][:300] or type(error).__name__
