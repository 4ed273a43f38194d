"""Waits for the jobs of a deferred task, polling one after the other."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from ork.model.task import Failure
from ork.scheduler.poll_jobs import HTTP_SECONDS, Done, JobFailed, JobResult, NotYet, job_result, open_headers
from ork.sdk import web
from ork.sdk.defer import Deferred
from ork.worker.call.invoke import call
from ork.worker.call.loading import load_function
from ork.worker.call.results import result_text

Secrets = Callable[[str], str]


class JobFailedError(Exception):
    """A job has failed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def wait_for(deferred: Deferred, root: str, secrets: Secrets, limit: int) -> str | None:
    """The result as JSON: of a single job, or a list for several."""
    texts = [_wait_for_one(job, root, secrets, limit) for job in deferred.jobs]
    return texts[0] if len(texts) == 1 else _list_of(texts)


def _wait_for_one(job: dict[str, Any], root: str, secrets: Secrets, limit: int) -> str | None:
    while True:
        match _ask(job, root, secrets, limit):
            case Done(text):
                return text
            case JobFailed(failure):
                raise JobFailedError(failure)
            case NotYet():
                time.sleep(job["every"])


def _ask(job: dict[str, Any], root: str, secrets: Secrets, limit: int) -> JobResult:
    if "call" in job:
        module, _, name = job["call"].partition(":")
        text = result_text(call(load_function(root, None, module, name), [], job.get("args", {})), limit)
        return NotYet() if text is None else Done(text)
    headers = open_headers(job.get("headers"), secrets)
    try:
        answer = web.fetch(job["http"], method=job.get("method", "GET"), headers=headers, timeout=HTTP_SECONDS)
    except web.WebError as trouble:
        return NotYet(str(trouble))
    return job_result(job, answer)


def _list_of(texts: Sequence[str | None]) -> str:
    return json.dumps([None if text is None else json.loads(text) for text in texts])
