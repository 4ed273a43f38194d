"""Calls of the Cloud Run Admin API, version 2, through Google's own client.

The client is synchronous over REST, so calls are made in a bounded pool of threads. Calls that may be repeated are: with
jitter, on 409, 429, 5xx and lost connections. `run_job` may not, for it has no request id: it is sent once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar

from ork.errors import AnswerLostError, EngineError, EngineUnreachableError, UsageError
from ork.model.cloud_run import Place
from ork.model.google_permissions import CLOUD_RUN

if TYPE_CHECKING:
    from google.cloud import run_v2

T = TypeVar("T")
CALL_SECONDS = 30.0
TRIES = 4
FIRST_PAUSE_SECONDS = 0.5
THREADS = 16
PAGE_SIZE = 200
NOT_FOUND, EXISTS, FORBIDDEN, TOO_MANY = 404, 409, 403, 429


class CloudRunApi:
    """The Jobs and executions of one place. `endpoint` replaces Google's, without credentials: for an emulator."""

    def __init__(self, place: Place, endpoint: str | None = None) -> None:
        self.place = place
        self.endpoint = endpoint
        self._clients: dict[str, Any] = {}
        self._threads = ThreadPoolExecutor(THREADS, "cloud-run")

    async def job(self, name: str) -> run_v2.Job | None:
        """The Job, or None if there is none."""
        return await self._found(lambda: self._jobs.get_job(name=self.place.job(name), **_ONCE))

    async def create_job(self, name: str, content: dict[str, Any]) -> None:
        """There is such a Job now; it may have been there before. It may not be ready yet."""
        job = self._run.Job(content)
        request = self._run.CreateJobRequest(parent=self.place.parent, job=job, job_id=name)
        try:
            await self.repeated(lambda: self._jobs.create_job(request=request, **_ONCE))
        except EngineError as error:
            if error.status != EXISTS:
                raise

    async def delete_job(self, name: str) -> None:
        """The Job and its executions are gone, or will be shortly."""
        await self._found(lambda: self._jobs.delete_job(name=self.place.job(name), **_ONCE))

    async def jobs(self) -> list[run_v2.Job]:
        request = self._run.ListJobsRequest(parent=self.place.parent, page_size=PAGE_SIZE)
        return await self.repeated(lambda: list(self._jobs.list_jobs(request=request, **_ONCE)))

    async def run_job(self, full_name: str, overrides: dict[str, Any]) -> str:
        """Asks once for an execution of the Job, and returns its full name. AnswerLostError: there may be one."""
        request = self._run.RunJobRequest(name=full_name, overrides=overrides)
        operation = await self._called(lambda: self._jobs.run_job(request=request, **_ONCE))
        return str(operation.metadata.name)

    async def executions(self, job: str, since: datetime) -> list[run_v2.Execution]:
        """The executions of a Job (its full name), newest first; those before `since` may be left out. None if there is no such Job."""
        request = self._run.ListExecutionsRequest(parent=job, page_size=PAGE_SIZE)

        def listed() -> list[run_v2.Execution]:
            pages = self._executions.list_executions(request=request, **_ONCE)
            return list(takewhile(lambda each: each.create_time >= since, pages))

        return await self._found(listed) or []

    async def execution(self, name: str) -> run_v2.Execution | None:
        return await self._found(lambda: self._executions.get_execution(name=name, **_ONCE))

    async def cancel(self, name: str) -> None:
        """The execution ends. It is not an error if it has ended, or there is none."""
        try:
            await self._found(lambda: self._executions.cancel_execution(name=name, **_ONCE))
        except EngineError as error:
            if error.status not in (400, EXISTS):  # it has ended
                raise

    async def exit_code(self, execution: str) -> int | None:
        """The exit code of the execution's first failed task; None if the platform knows none."""
        request = self._run.ListTasksRequest(parent=execution, page_size=PAGE_SIZE)
        tasks = await self._found(lambda: list(self._tasks.list_tasks(request=request, **_ONCE))) or []
        codes = [task.last_attempt_result.exit_code for task in tasks if task.last_attempt_result]
        return next((int(code) for code in codes if code), None)

    async def ended_tasks(self, execution: str) -> dict[int, str]:
        """The tasks of an execution that have ended, by index, each with the platform's words."""
        request = self._run.ListTasksRequest(parent=execution, page_size=PAGE_SIZE)
        tasks = await self._found(lambda: list(self._tasks.list_tasks(request=request, **_ONCE))) or []
        return {int(task.index): _end_of(task) for task in tasks if task.completion_time}

    async def missing_permissions(self) -> list[str]:
        """Those of CLOUD_RUN that our identity lacks. Starts nothing."""
        from google.iam.v1 import iam_policy_pb2

        resource = self.place.job("ork-permissions")
        request = iam_policy_pb2.TestIamPermissionsRequest(resource=resource, permissions=list(CLOUD_RUN))
        answer = await self.repeated(lambda: self._jobs.test_iam_permissions(request=request, **_ONCE))
        held = set(answer.permissions)
        return [permission for permission in CLOUD_RUN if permission not in held]

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    # ── calling ──────────────────────────────────────────────────────────────────────────────────

    async def _found(self, call: Callable[[], T]) -> T | None:
        try:
            return await self.repeated(call)
        except EngineError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    async def repeated(self, call: Callable[[], T]) -> T:
        """Make a call that may be repeated, in a thread. EngineError in the platform's words."""
        pause = FIRST_PAUSE_SECONDS
        for left in reversed(range(TRIES)):
            try:
                return await self._called(call)
            except EngineError as error:
                if not left or not (error.status in (0, TOO_MANY) or error.status >= 500):
                    raise
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            pause *= 2
        raise AssertionError("unreachable")

    async def _called(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, _translated, call)

    @property
    def _jobs(self) -> Any:
        return self._client("JobsClient")

    @property
    def _executions(self) -> Any:
        return self._client("ExecutionsClient")

    @property
    def _tasks(self) -> Any:
        return self._client("TasksClient")

    def _client(self, kind: str) -> Any:
        if kind not in self._clients:
            self._clients[kind] = getattr(self._run, kind)(transport="rest", **_client_options(self.endpoint))
        return self._clients[kind]

    @cached_property
    def _run(self) -> Any:
        """Google's client. UsageError if the extra `gcp` is not installed."""
        try:
            from google.cloud import run_v2
        except ImportError as error:
            hint = "pip install 'ork-orchestrator[gcp]'"
            raise UsageError(f"Cloud Run needs a package that is not installed: {error.name}", hint=hint) from None
        return run_v2


_ONCE: dict[str, Any] = {"timeout": CALL_SECONDS, "retry": None}


def _end_of(task: run_v2.Task) -> str:
    completed = [each.message for each in task.conditions if each.type_ == "Completed" and each.message]
    return str(
        completed[0] if completed else f"the container ended with exit code {task.last_attempt_result.exit_code}"
    )


def _client_options(endpoint: str | None) -> dict[str, Any]:
    if endpoint is None:
        return {}
    return {"client_options": {"api_endpoint": endpoint}, "credentials": client_credentials(endpoint)}


def client_credentials(endpoint: str | None) -> Any:
    """Those of this process. None are used with an emulator."""
    from google.auth import default
    from google.auth.credentials import AnonymousCredentials

    if endpoint is not None:
        return AnonymousCredentials()
    return default(scopes=["https://www.googleapis.com/auth/cloud-platform"])[0]


def _translated(call: Callable[[], T]) -> T:
    """What the call returns. Errors of the client become EngineErrors in the platform's words."""
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError

    try:
        return call()
    except GoogleAPICallError as error:
        raise EngineError(f"Cloud Run: {error.message}", status=int(error.code or 0)) from None
    except DefaultCredentialsError:
        hint = "run `gcloud auth application-default login`, or run the scheduler with a service account"
        raise EngineUnreachableError("Cloud Run: this process has no Google credentials", hint=hint) from None
    except GoogleAuthError as error:
        raise EngineUnreachableError(f"Cloud Run: no access token: {error}") from None
    except OSError as error:  # as every error of the client's transport is
        if _was_never_sent(error):
            raise EngineUnreachableError(f"Cloud Run does not answer: {_short(error)}") from None
        raise AnswerLostError(f"Cloud Run: the connection was lost: {_short(error)}") from None


def _was_never_sent(error: Exception) -> bool:
    """True if there was no connection at all."""
    causes: Sequence[Any] = error.args
    return any(type(getattr(cause, "reason", cause)).__name__ in _NO_CONNECTION for cause in causes)


_NO_CONNECTION = ("NewConnectionError", "ConnectTimeoutError", "NameResolutionError")


def _short(error: Exception) -> str:
    return str(error)[:300]
