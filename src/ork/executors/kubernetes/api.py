"""Calls of the Kubernetes API, through lightkube. All can be repeated: names are given by us, and what is gone need not be deleted."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from ork.errors import AnswerLostError, EngineError, EngineUnreachableError
from ork.executors.kubernetes.connection import ClusterConnection
from ork.executors.kubernetes.pods import PodSeen, seen
from ork.model.record import Record

if TYPE_CHECKING:
    from lightkube import AsyncClient
    from lightkube.resources.batch_v1 import Job

T = TypeVar("T")
CALL_SECONDS = 30.0
TRIES = 5
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.3, 20.0
PAGE_SIZE = 500
AT_ONCE = 32
# The server ends a watch after this time; one that says nothing for longer has lost its connection.
WATCH_SECONDS, WATCH_MARGIN_SECONDS = 240, 30.0
BAD_TOKEN, FORBIDDEN, NOT_FOUND, EXISTS, EXPIRED, TOO_MANY = 401, 403, 404, 409, 410, 429
_QUOTA = "exceeded quota"
_MOST_EVENTS = 50


class JobSeen(Record):
    """A Job as it was last seen. `reason` and `message` are those of the condition that ended it."""

    name: str
    attempts: str  # its annotation
    is_over: bool
    is_deleting: bool
    has_failed: bool = False
    reason: str = ""
    message: str = ""
    age_seconds: float = 0.0


class ListedPods(Record):
    pods: list[PodSeen]
    version: str


class ClusterApi:
    """The Jobs and pods of one namespace. `transport` replaces the network, for tests."""

    def __init__(self, connection: ClusterConnection, transport: Any = None) -> None:
        self.connection = connection
        self._transport = transport
        self._made: AsyncClient | None = None
        self._slots = asyncio.Semaphore(AT_ONCE)
        self.calls = 0  # requests that were sent

    # ── Jobs ─────────────────────────────────────────────────────────────────────────────────────

    async def create_job(self, manifest: dict[str, Any]) -> bool:
        """True if the Job was created, False if there was one with this name."""
        from lightkube.resources.batch_v1 import Job

        job = Job.from_dict(manifest)
        try:
            await self._repeated(lambda: self._client.create(job))
        except EngineError as error:
            if error.status != EXISTS:
                raise
            return False
        return True

    async def job(self, name: str) -> JobSeen | None:
        from lightkube.resources.batch_v1 import Job

        found = await self._found(lambda: self._client.get(Job, name))
        return None if found is None else _job_seen(found)

    async def jobs(self, labels: dict[str, str]) -> list[JobSeen]:
        from lightkube.resources.batch_v1 import Job

        async def listed() -> list[JobSeen]:
            pages = self._client.list(Job, labels=_selector(labels), chunk_size=PAGE_SIZE, namespace=self._namespace)
            return [_job_seen(job) async for job in pages]

        return await self._repeated(listed)

    async def delete_job(self, name: str) -> None:
        """The Job and its pods are gone, or will be shortly."""
        from lightkube.resources.batch_v1 import Job
        from lightkube.types import CascadeType

        await self._found(lambda: self._client.delete(Job, name, cascade=CascadeType.BACKGROUND))

    # ── pods ─────────────────────────────────────────────────────────────────────────────────────

    async def pods(self, labels: dict[str, str]) -> ListedPods:
        """All pods with these labels, in pages, and the version from which a watch goes on."""
        from lightkube.resources.core_v1 import Pod

        async def listed() -> ListedPods:
            pages = self._client.list(Pod, labels=_selector(labels), chunk_size=PAGE_SIZE, namespace=self._namespace)
            found = [each async for pod in pages if (each := seen(pod)) is not None]
            return ListedPods(found, pages.resourceVersion)

        return await self._repeated(listed)

    async def watch_pods(self, labels: dict[str, str], version: str) -> AsyncIterator[tuple[str, PodSeen | None, str]]:
        """Changes after a version: kind, pod, and the version they lead to. Ends with an EngineError, of status EXPIRED if the
        version is too old."""
        from lightkube.resources.core_v1 import Pod

        self.calls += 1
        async with _translated():
            changes = self._client.watch(
                Pod,
                labels=_selector(labels),
                namespace=self._namespace,
                server_timeout=WATCH_SECONDS,
                resource_version=version,
            ).__aiter__()
            while True:
                async with asyncio.timeout(WATCH_SECONDS + WATCH_MARGIN_SECONDS):
                    kind, pod = await anext(changes)
                meta = pod.metadata
                yield kind, seen(pod), str(meta.resourceVersion if meta else version)

    async def pod(self, name: str) -> PodSeen | None:
        from lightkube.resources.core_v1 import Pod

        found = await self._found(lambda: self._client.get(Pod, name))
        return None if found is None else seen(found)

    async def delete_pod(self, name: str, grace_seconds: int) -> None:
        from lightkube.resources.core_v1 import Pod

        await self._found(lambda: self._client.delete(Pod, name, grace_period=grace_seconds))

    async def log_lines(self, pod: str, container: str, *, follow: bool) -> AsyncIterator[str]:
        """What a container has written; with `follow`, until it ends. EngineError if it cannot be read."""
        self.calls += 1
        async with _translated():
            try:
                async for line in self._client.log(pod, container=container, follow=follow):
                    yield line
            except RuntimeError as error:  # lightkube cannot read the answer of a stream that is refused
                raise EngineError(f"Kubernetes: the log of {pod} cannot be followed now") from error

    async def log_tail(self, pod: str, container: str, lines: int) -> list[str]:
        """The last lines that a container has written; none if they cannot be read."""

        async def read() -> list[str]:
            return [line async for line in self._client.log(pod, container=container, tail_lines=lines, newlines=False)]

        try:
            return await self._repeated(read)
        except EngineError:
            return []

    async def warnings(self, object: str) -> list[str]:
        """The messages of warnings about a Job or pod, the oldest first."""
        from lightkube.resources.core_v1 import Event

        async def listed() -> list[str]:
            fields: Any = {"involvedObject.name": object, "type": "Warning"}
            pages = self._client.list(Event, fields=fields, chunk_size=_MOST_EVENTS, namespace=self._namespace)
            events = [each async for each in pages]
            events.sort(key=lambda each: str(each.lastTimestamp or each.eventTime or ""))
            return [f"{each.reason}: {each.message}" for each in events if each.message]

        return await self._repeated(listed)

    # ── rights ───────────────────────────────────────────────────────────────────────────────────

    async def may(self, verb: str, resource: str) -> bool:
        """Whether our identity may do this in the namespace. `resource` is `GROUP/NAME`, and may have a subresource: `/pods/log`."""
        from lightkube.models.authorization_v1 import ResourceAttributes, SelfSubjectAccessReviewSpec
        from lightkube.resources.authorization_v1 import SelfSubjectAccessReview

        group, name, *rest = resource.split("/")
        asked = ResourceAttributes(
            namespace=self.connection.namespace,
            verb=verb,
            group=group,
            resource=name,
            subresource=rest[0] if rest else None,
        )
        review = SelfSubjectAccessReview(spec=SelfSubjectAccessReviewSpec(resourceAttributes=asked))
        answer = await self._repeated(lambda: self._client.create(review))
        return bool(answer.status and answer.status.allowed)

    async def close(self) -> None:
        if self._made is not None:
            await self._made.close()

    # ── calling ──────────────────────────────────────────────────────────────────────────────────

    async def _found(self, call: Callable[[], Awaitable[T]]) -> T | None:
        try:
            return await self._repeated(call)
        except EngineError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    async def _repeated(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call, again if that can help: after a lost connection, 429 and 5xx, with jitter. EngineError in the platform's
        words."""
        pause = FIRST_PAUSE_SECONDS
        for left in reversed(range(TRIES)):
            try:
                async with self._slots, _translated(), asyncio.timeout(CALL_SECONDS):
                    self.calls += 1
                    return await call()
            except EngineError as error:
                if not left or not (error.status in (0, TOO_MANY) or error.status >= 500):
                    raise
                asked = getattr(error, "retry_after", 0.0)
            await asyncio.sleep(max(asked, pause * random.uniform(0.5, 1.5)))
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        raise AssertionError("unreachable")

    @property
    def _namespace(self) -> str:
        return self.connection.namespace

    @property
    def _client(self) -> AsyncClient:
        if self._made is None:
            import httpx2
            from lightkube import AsyncClient

            self._made = AsyncClient(
                config=self.connection.config,
                namespace=self.connection.namespace,
                timeout=httpx2.Timeout(CALL_SECONDS),
                transport=self._transport,
            )
        return self._made


class _BusyError(EngineError):
    """429, or 503 with a time to wait."""

    retry_after = 0.0


@asynccontextmanager
async def _translated() -> AsyncIterator[None]:
    """Errors of the client become EngineErrors in the platform's words."""
    import httpx2
    from lightkube.core.exceptions import ApiError, ConfigError

    try:
        yield
    except ApiError as error:
        status = int(error.status.code or 0)
        made = _BusyError(f"Kubernetes: {error.status.message or error.status.reason}", status=status)
        made.retry_after = _retry_after(error.response)
        raise made from None
    except httpx2.HTTPStatusError as error:
        raise EngineError(
            f"Kubernetes: status {error.response.status_code}", status=error.response.status_code
        ) from None
    except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
        raise EngineUnreachableError(f"Kubernetes does not answer: {_short(error)}") from None
    except httpx2.HTTPError as error:
        raise AnswerLostError(f"Kubernetes: the connection was lost: {_short(error)}") from None
    except TimeoutError:
        raise AnswerLostError(f"Kubernetes: no answer within {CALL_SECONDS:g} s") from None
    except ConfigError as error:
        raise EngineUnreachableError(f"Kubernetes: no credentials: {_short(error)}") from None


def is_final(error: EngineError) -> bool:
    """True if asking again cannot help. Quotas are refused with 403 and become free; tokens are renewed."""
    if error.status == FORBIDDEN and _QUOTA in error.message:
        return False
    return 400 <= error.status < 500 and error.status not in (BAD_TOKEN, EXISTS, TOO_MANY)


def _job_seen(job: Job) -> JobSeen:
    from datetime import UTC, datetime

    meta, status = job.metadata, job.status
    assert meta is not None
    ended = next(
        (
            each
            for each in (status.conditions if status else None) or ()
            if each.type in ("Complete", "Failed") and each.status == "True"
        ),
        None,
    )
    created = meta.creationTimestamp
    return JobSeen(
        str(meta.name),
        (meta.annotations or {}).get("ork.dev/attempts", ""),
        ended is not None,
        meta.deletionTimestamp is not None,
        ended is not None and ended.type == "Failed",
        (ended.reason or "") if ended is not None else "",
        (ended.message or "") if ended is not None else "",
        (datetime.now(UTC) - created).total_seconds() if created is not None else 0.0,
    )


def _selector(labels: dict[str, str]) -> Any:
    return labels


def _retry_after(response: Any) -> float:
    text = "" if response is None else response.headers.get("Retry-After", "")
    return min(float(text), LONGEST_PAUSE_SECONDS) if text.isdecimal() else 0.0


def _short(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:300]
