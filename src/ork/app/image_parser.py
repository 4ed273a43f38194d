"""Runs `ork-parse` in an image on a platform: as an execution on Cloud Run, or as a Job of Kubernetes.

It is an attempt like any other, of a run that is in no store: its spec and its output, the parser's document, are in the object
store until it has been read. The worker signs its status, so the document comes from that attempt.
"""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ork.app.platforms import cloud_run_document, default_config, kubernetes_document, placement_of
from ork.errors import ExecutorError, ObjectsError, OrkError
from ork.executors.attempt_rows import unknown_attempt
from ork.executors.executor import Executor, LaunchOrder, Presence
from ork.locations.document import MAX_BYTES
from ork.locations.source import PARSE_SECONDS, TAIL_BYTES, ScanError, SourceReading
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.location import PARSE
from ork.model.task import Attempt, AttemptStatus
from ork.objects.calls import DocumentCalls
from ork.objects.documents import derive_token, sign, token_hash
from ork.worker.supervise.stand_in import StandIn

if TYPE_CHECKING:
    from ork.objects.attempt_documents import AttemptDocuments
    from ork.settings import Settings

START_SECONDS = 300.0
_COMMAND = ["sh", "-c", 'exec ork-parse > "$ORK_OUTPUT_FILE"']
_LOOK_SECONDS = 5.0


class ImageParser:
    """`platform` is `cloudrun` or `kubernetes`."""

    def __init__(self, settings: Settings, objects: AttemptDocuments, platform: str, signing_key: bytes) -> None:
        self._signing_key = signing_key
        self._platform = platform
        self._settings = settings
        self._objects = objects
        self._calls = DocumentCalls(objects)

    async def parse(self, image: str) -> SourceReading:
        """The parser's document and the end of its log. ScanError in the platform's words."""
        executor = self._executor()
        key = AttemptKey(RunId(f"{PARSE}{os.urandom(6).hex()}"), TaskKey(PARSE), 1)
        token = derive_token(self._signing_key, str(key))
        attempt = Attempt(
            key, AttemptStatus.DISPATCHED, executor.name, executor.name_for(key), token_hash(token), datetime.now(UTC)
        )
        try:
            spec = sign(self._spec(attempt, image), attempt.token_hash)
            await self._calls.call(self._objects.put_specs, [(str(key), spec)])
            async with asyncio.timeout(START_SECONDS + PARSE_SECONDS):
                status = await self._ended(executor, LaunchOrder(attempt, token, ".", spec=spec, is_new=True))
            return await self._reading(attempt, status)
        except TimeoutError:
            await executor.stop([attempt], at_once=True)
            raise ScanError(f"ork-parse did not end within {START_SECONDS + PARSE_SECONDS:g} s") from None
        except (ObjectsError, ExecutorError) as error:
            raise ScanError(error.message, code=error.code) from None
        finally:
            executor.release([attempt])
            await executor.close()
            await self._calls.call(self._objects.delete_runs, [str(key.run)])

    def _executor(self) -> Executor:
        settings, placement = self._settings, placement_of(self._settings)
        if self._platform == "kubernetes":
            from ork.app import kubernetes

            place = placement.namespace(default_config(settings))
            return kubernetes.executor_for(self._platform, place, settings, self._objects)
        from ork.app import cloud_run

        assert placement.usual is not None
        return cloud_run.executor_for(self._platform, placement.usual, settings, self._objects, unknown_attempt)

    def _container(self, image: str) -> dict[str, Any]:
        settings, config = self._settings, default_config(self._settings)
        if self._platform == "kubernetes":
            there = {"kubernetes": kubernetes_document(config, settings, has_ork=True, secrets={})}
        else:
            there = {"cloud_run": cloud_run_document(config, has_ork=True, secrets={})}
        return {
            "image": image, "cpu": None, "memory": None, "user": config.user, "read_only": config.read_only,
            "pull": str(config.pull), **there,
        }  # fmt: skip

    async def _ended(self, executor: Executor, order: LaunchOrder) -> dict[str, Any]:
        """The last status of the attempt."""
        documents, news = StandIn(self._objects, order.attempt), asyncio.Event()

        def on_status(_key: AttemptKey, _status: object = None, /) -> None:
            news.set()

        await executor.start([order], on_status)
        while True:
            if await self._calls.call(documents.is_over):
                return await self._calls.call(documents.status) or {}
            if (await executor.find([order.attempt]))[0] is Presence.GONE:
                for problem in await executor.start([order], on_status):
                    raise ScanError(problem.why, is_lasting=problem.final)
            news.clear()
            try:
                async with asyncio.timeout(_LOOK_SECONDS):
                    await news.wait()
            except TimeoutError:
                continue

    async def _reading(self, attempt: Attempt, status: dict[str, Any]) -> SourceReading:
        name = str(attempt.key)
        size = await self._calls.call(self._objects.log_size, name) or 0
        log = await self._calls.call(self._objects.read_log, name, max(0, size - TAIL_BYTES))
        stderr = log.decode("utf-8", "replace")
        output = status.get("output") or {}
        if "inline" in output:
            return SourceReading(output["inline"].encode(), stderr)
        if "object" in output:
            (data,) = await self._calls.call(self._objects.read_values, [output["object"]], MAX_BYTES)
            if isinstance(data, OrkError):
                raise data
            if data is not None:
                return SourceReading(data, stderr)
        why = (status.get("failure") or {}).get("message", "it left no document")
        raise ScanError(f"ork-parse: {why}", output=stderr, is_lasting=status.get("state") == "failed")

    def _spec(self, attempt: Attempt, image: str) -> dict[str, Any]:
        settings = self._settings
        return {
            "v": 1, "attempt": str(attempt.key), "run_id": attempt.key.run, "workflow": "ork-parse", "task": "parse",
            "number": 1, "round": 1, "index": None, "parallel_index": None, "parallel_count": None, "item": None,
            "scheduled_for": None, "params": {}, "kind": "command", "argv": _COMMAND, "root": ".", "paths": [],
            "container": self._container(image),
            "limits": None, "environment": None, "inputs": None, "upstream": {}, "upstream_states": {}, "env": {},
            "timeout": PARSE_SECONDS, "news": None, "traceparent": None, "script_dir": None, "builds": settings.home,
            "task_user": None, "heartbeat_seconds": settings.heartbeat_seconds, "fence_seconds": settings.fence_seconds,
            "stop_grace_seconds": settings.stop_grace_seconds, "inline_limit": 65536, "output_limit": MAX_BYTES,
            "durability": settings.durability, "wake_url": None,
        }  # fmt: skip
