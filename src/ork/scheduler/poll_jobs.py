"""External jobs an attempt has handed over to: how to ask one whether it is done, and how to tell it to stop."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from ork.errors import ExecutorError
from ork.executors.executor import LaunchOrder
from ork.model.record import Record
from ork.model.task import Failure, FailureKind
from ork.objects import documents, layout
from ork.sdk import defer, web

T = TypeVar("T")

HTTP_SECONDS = 20.0
AT_ONCE = 8
SECRET_PREFIX = "ORK_SECRET_"
_TEMPORARY = frozenset({408, 425, 429, 500, 502, 503, 504})


class NotYet(Record):
    """`trouble` says why nothing could be learnt; asking goes on all the same."""

    trouble: str | None = None


class Done(Record):
    """`text` is the result as JSON; None for no result."""

    text: str | None


class JobFailed(Record):
    failure: Failure


Answer = NotYet | Done | JobFailed


class AskProcess(Protocol):
    async def __call__(self, order: LaunchOrder, request: bytes, secrets: Mapping[str, str], log: str) -> bytes: ...


class Handover(Record):
    """What there is to know about an attempt that waits: its own spec, and where its worker would run."""

    order: LaunchOrder
    spec: dict[str, Any]
    log: str
    objects_url: str


class Jobs:
    """Asks jobs of all kinds but sub-workflows. Slow answers hold up nobody: HTTP goes through a few threads."""

    def __init__(self, secrets: Callable[[str], str | None], ask_process: AskProcess) -> None:
        self._secrets = secrets
        self._ask_process = ask_process
        self._room = asyncio.Semaphore(AT_ONCE)

    async def ask(self, job: dict[str, Any], handover: Handover) -> Answer:
        try:
            if "http" in job:
                answer = await self._fetch(job["http"], job.get("method", "GET"), job.get("headers"))
                judged = judge_answer(job, answer)
                if isinstance(judged, Done) and judged.text is not None:
                    # What other readers of outputs would stumble over fails here, where its cause is known.
                    documents.strict_json(judged.text.encode(), max_size=handover.spec["output_limit"])
                return judged
            return await self._call(job["call"], job.get("args", {}), handover)
        except (web.WebError, ExecutorError) as trouble:
            return NotYet(str(trouble))
        except (ValueError, documents.DocumentError) as problem:
            return JobFailed(Failure(FailureKind.OUTPUT, f"the job's answer cannot be used: {problem}"))

    async def cancel(self, job: dict[str, Any], handover: Handover) -> str | None:
        """None if the job was told, or nobody said how to; otherwise why it was not."""
        cancel = job.get("cancel")
        if cancel is None:
            return None
        try:
            if "call" in job:
                answer = await self._call(cancel, job.get("args", {}), handover)
                return answer.failure.message if isinstance(answer, JobFailed) else None
            headers = cancel.get("headers", job.get("headers"))
            told = await self._fetch(cancel["url"], cancel.get("method", "POST"), headers)
        except (web.WebError, ExecutorError, ValueError) as trouble:
            return str(trouble)
        return None if told.status < 400 or told.status in (404, 409, 410) else f"answered {told.status}"

    async def _fetch(self, url: str, method: str, headers: Mapping[str, Any] | None) -> web.Answer:
        opened = open_headers(headers, self._secrets)
        async with self._room:
            return await in_thread(lambda: web.fetch(url, method=method, headers=opened, timeout=HTTP_SECONDS))

    async def _call(self, function: str, args: dict[str, Any], handover: Handover) -> Answer:
        spec = handover.spec
        if spec.get("container") is not None:
            # Whoever named the function is in a container: it must not get one run on this side of the wall.
            message = "a task in an image cannot have a function called here: hand over with `ork.http_job`"
            return JobFailed(Failure(FailureKind.OUTPUT, message))
        stem = layout.stem_of(handover.order.spec_key)
        request = {"spec": spec, "objects": handover.objects_url, "stem": stem, "call": function, "args": args}
        secrets = {SECRET_PREFIX + name: self._secrets(name) or "" for name in secret_names(spec["env"])}
        data = json.dumps(request).encode()
        async with self._room:
            reply = await self._ask_process(handover.order, data, secrets, handover.log)
        answer = documents.strict_json(reply, max_size=2 * spec["output_limit"])
        if answer.get("failure") is not None:
            failed = answer["failure"]
            return JobFailed(Failure(FailureKind(failed["kind"]), failed["message"], failed["detail"]))
        return NotYet() if answer["result"] is None else Done(answer["result"])


def open_headers(headers: Mapping[str, Any] | None, secrets: Callable[[str], str | None]) -> dict[str, str]:
    """As they are sent: {"secret": NAME} becomes its value. ValueError if there is none."""
    return {name: _opened(value, secrets) for name, value in (headers or {}).items()}


def _opened(value: Any, secrets: Callable[[str], str | None]) -> str:
    if not isinstance(value, dict):
        return str(value)
    secret = secrets(str(value.get("secret")))
    if secret is None:
        raise ValueError(f"there is no secret `{value.get('secret')}`")
    return secret


def judge_answer(job: dict[str, Any], answer: web.Answer) -> Answer:
    """What an HTTP answer says about the job. A status that may pass says nothing yet."""
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


def _json_or_text(answer: web.Answer) -> Any:
    if "json" in answer.content_type:
        return answer.json()
    return answer.text or None


def secret_names(bounds: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [bound["secret"].removeprefix(SECRET_PREFIX) for bound in bounds.values() if "secret" in bound]


async def in_thread(work: Callable[[], T]) -> T:
    """In a thread that holds up nobody, not even the end of this process."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        try:
            outcome: tuple[T | None, BaseException | None] = (work(), None)
        except BaseException as error:
            outcome = (None, error)
        try:
            loop.call_soon_threadsafe(settle, *outcome)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    threading.Thread(target=run, daemon=True).start()
    return await future
