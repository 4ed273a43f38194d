"""External jobs that attempts wait for: how to poll and how to cancel one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias

from ork.errors import ExecutorError, SecretError, SecretNotYetError, UndeclaredSecretError
from ork.executors.executor import LaunchOrder
from ork.model.ids import RunId
from ork.model.outbound import OutboundRule
from ork.model.record import Record
from ork.model.task import Failure, FailureKind
from ork.objects import documents
from ork.objects.attempt_documents import AttemptDocuments, LogSink
from ork.objects.calls import DocumentCalls
from ork.outbound.addresses import BlockedAddressError, NoResponseError
from ork.outbound.background import in_thread
from ork.scheduler.spec_secrets import SECRET_PREFIX, mask_of, names_in, secrets_in
from ork.sdk import defer, web

HTTP_SECONDS = 20.0
AT_ONCE = 8
_TEMPORARY = frozenset({408, 425, 429, 500, 502, 503, 504})


class NotYet(Record):
    """The job is not done, or could not be polled because of `error`. Polling continues in both cases."""

    error: str | None = None


class Done(Record):
    """`text` is the result as JSON; None for no result."""

    text: str | None


class JobFailed(Record):
    failure: Failure


JobResult = NotYet | Done | JobFailed
Fetch: TypeAlias = Callable[..., Awaitable[web.HttpResponse]]


OpenParams: TypeAlias = Callable[[RunId], Awaitable[dict[str, str]]]
"""The sensitive params of a run, as variables of a worker."""


class AskProcess(Protocol):
    async def __call__(self, order: LaunchOrder, request: bytes, secrets: Mapping[str, str], log: LogSink) -> bytes: ...


class Handover(Record):
    """A waiting attempt: its spec, its documents, and the order that its worker was started with."""

    order: LaunchOrder
    spec: dict[str, Any]
    objects: AttemptDocuments


class Jobs:
    """Polls jobs of all kinds except sub-workflows, at most AT_ONCE at a time and without blocking the event loop."""

    def __init__(
        self, secrets: Callable[[str, str], str], rule: OutboundRule, ask_process: AskProcess, params: OpenParams
    ) -> None:
        self._secrets = secrets
        self._params = params
        self._rule = rule
        self._ask_process = ask_process
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def ask(self, job: dict[str, Any], handover: Handover) -> JobResult:
        """Poll a job. Secrets are masked in failures, since the service may repeat what it was sent."""
        answer = await self._ask(job, handover)
        if not isinstance(answer, JobFailed) or not secrets_in(handover.spec):
            return answer
        try:
            mask = await in_thread(lambda: mask_of(handover.spec, self._secrets))
        except SecretError:
            return answer  # it was never sent
        failure = answer.failure
        if mask is None:
            return answer
        return JobFailed(Failure(failure.kind, mask.text(failure.message), mask.value(failure.detail)))

    async def _ask(self, job: dict[str, Any], handover: Handover) -> JobResult:
        try:
            if "http" in job:
                answer = await self._fetch(job["http"], job.get("method", "GET"), job.get("headers"), handover.spec)
                judged = job_result(job, answer)
                if isinstance(judged, Done) and judged.text is not None:
                    # Values that readers of outputs cannot decode are rejected here, where the cause is known.
                    documents.strict_json(judged.text.encode(), max_size=handover.spec["output_limit"])
                return judged
            return await self._call(job["call"], job.get("args", {}), handover)
        except (NoResponseError, ExecutorError, SecretNotYetError) as problem:
            return NotYet(str(problem))
        except (BlockedAddressError, SecretError) as problem:
            return JobFailed(Failure(FailureKind.OUTPUT, f"the job cannot be asked: {problem}"))
        except (ValueError, documents.DocumentError) as problem:
            return JobFailed(Failure(FailureKind.OUTPUT, f"the job's answer cannot be used: {problem}"))

    async def cancel(self, job: dict[str, Any], handover: Handover) -> str | None:
        """Cancel a job. Returns the error if that failed; None also if the job defines no way to cancel it."""
        cancel = job.get("cancel")
        if cancel is None:
            return None
        try:
            if "call" in job:
                answer = await self._call(cancel, job.get("args", {}), handover)
                return answer.failure.message if isinstance(answer, JobFailed) else None
            headers = cancel.get("headers", job.get("headers"))
            response = await self._fetch(cancel["url"], cancel.get("method", "POST"), headers, handover.spec)
        except (NoResponseError, BlockedAddressError, ExecutorError, SecretError, ValueError) as problem:
            return str(problem)
        return None if response.status < 400 or response.status in (404, 409, 410) else f"answered {response.status}"

    async def _fetch(
        self, url: str, method: str, headers: Mapping[str, Any] | None, spec: dict[str, Any]
    ) -> web.HttpResponse:
        def prepare() -> tuple[Fetch, dict[str, str]]:
            from ork.outbound.fetch import fetch  # loads httpx2, which would block the event loop for 0.1 s

            return fetch, open_headers(headers, lambda name: self._secret_of(name, spec))

        hidden = [name for name, value in (headers or {}).items() if isinstance(value, dict)]
        async with self._slots:
            fetch, opened = await in_thread(prepare)
            return await fetch(
                url, self._rule, method=method, headers=opened, secret_headers=hidden, timeout=HTTP_SECONDS
            )

    def _secret_of(self, name: str, spec: dict[str, Any]) -> str:
        """The value of a secret that the task declares. Other secrets are refused, so that a task cannot obtain them by
        waiting for a job."""
        if name not in secrets_in(spec):
            message = f"the task does not declare secret `{name}`, so its jobs cannot use it"
            if name.startswith("ORK_"):
                raise UndeclaredSecretError(
                    f"{message}: names that begin with ORK_ are Ork's own and never given to tasks"
                )
            raise UndeclaredSecretError(f"{message}: add `env: {{{name}: {{secret: {name}}}}}` to the task")
        return self._secrets(name, spec["workflow"])

    async def _call(self, function: str, args: dict[str, Any], handover: Handover) -> JobResult:
        spec = handover.spec
        if spec.get("container") is not None:
            # The function was named by a task in a container: its code must not run outside of the container.
            message = "a task in an image cannot have a function called here: hand over with `ork.http_job`"
            return JobFailed(Failure(FailureKind.OUTPUT, message))
        attempt = handover.order.attempt
        if handover.objects.is_guarded:
            spec = {**spec, "access": handover.objects.sign_in(str(attempt.key), attempt.token_hash)}
        request = {"spec": spec, "objects": handover.objects.url, "call": function, "args": args}
        names = names_in(spec["env"])
        values = await in_thread(lambda: [self._secrets(name, spec["workflow"]) for name in names])
        secrets = {SECRET_PREFIX + name: value for name, value in zip(names, values, strict=True)}
        if spec.get("sealed_params"):
            secrets |= await self._params(handover.order.attempt.run)
        data = json.dumps(request).encode()
        log = handover.objects.open_log(str(handover.order.attempt.key))
        try:
            async with self._slots:
                reply = await self._ask_process(handover.order, data, secrets, log)
        finally:
            await DocumentCalls(handover.objects).call(log.close)
        answer = documents.strict_json(reply, max_size=2 * spec["output_limit"])
        if answer.get("failure") is not None:
            failed = answer["failure"]
            return JobFailed(Failure(FailureKind(failed["kind"]), failed["message"], failed["detail"]))
        return NotYet() if answer["result"] is None else Done(answer["result"])


def open_headers(headers: Mapping[str, Any] | None, secrets: Callable[[str], str]) -> dict[str, str]:
    """The headers with {"secret": NAME} replaced by its value. SecretError if it has none."""
    return {name: _opened(value, secrets) for name, value in (headers or {}).items()}


def _opened(value: Any, secrets: Callable[[str], str]) -> str:
    return secrets(str(value.get("secret"))) if isinstance(value, dict) else str(value)


def job_result(job: dict[str, Any], answer: web.HttpResponse) -> JobResult:
    """The state of the job according to an HTTP response. Temporary error codes count as not done."""
    if answer.status in _TEMPORARY:
        return NotYet(f"answered {answer.status}")
    if answer.status >= 400:
        message = f"its status URL answered {answer.status}: {answer.shown()}"
        return JobFailed(Failure(FailureKind.EXIT, message))
    if "done" not in job and "failed" not in job:
        return NotYet() if answer.status == 202 else Done(_result(job, _json_or_text(answer)))
    value = answer.json()
    if "failed" in job and defer.is_met(job["failed"], value):
        return JobFailed(Failure(FailureKind.EXIT, f"the job failed: {answer.shown()}"))
    is_done = defer.is_met(job["done"], value) if "done" in job else answer.status != 202
    return Done(_result(job, value)) if is_done else NotYet()


def _result(job: dict[str, Any], value: Any) -> str | None:
    found = defer.follow(value, job.get("output", ""))
    if found is defer.NOTHING:
        raise ValueError(f"the job is done, and its answer has no `{job['output']}`")
    return None if found is None else json.dumps(found, separators=(",", ":"))


def _json_or_text(answer: web.HttpResponse) -> Any:
    if "json" in answer.content_type:
        return answer.json()
    return answer.text or None
