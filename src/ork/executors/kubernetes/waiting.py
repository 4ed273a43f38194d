"""Says why attempts have not begun, in the platform's words: in their logs, from which `ork why` takes them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from ork.errors import EngineError, ObjectsError
from ork.executors.docker.container_documents import DocumentsOf
from ork.executors.kubernetes.api import ClusterApi
from ork.executors.kubernetes.logs import NOTE
from ork.executors.kubernetes.pod_endings import HOPELESS
from ork.executors.kubernetes.pods import PodSeen
from ork.executors.kubernetes.settling import give_up_waiting
from ork.executors.kubernetes.units import Member, Unit

_MOST_NOTES = 8  # about one attempt: reasons alternate


class Waiting:
    """`in_background` runs a coroutine."""

    def __init__(
        self,
        api: ClusterApi,
        documents: DocumentsOf,
        in_background: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._api = api
        self._documents = documents
        self._in_background = in_background

    def note(self, unit: Unit, member: Member, pods: list[PodSeen], *, at_once: bool = False) -> None:
        """Say why the attempt waits, if that was so at the last look, too; most waits are over before."""
        words = next((pod.words() for pod in pods if pod.words()), None if pods else unit.warning)
        is_lasting = words is not None and words == member.waits_for
        member.waits_for = words
        if words is not None and (is_lasting or at_once):
            self.say(member, NOTE + words)

    async def ask(self, unit: Unit) -> None:
        """Learn why the Job has no pods: quotas, and whatever else refuses them, are events of the Job."""
        assert unit.job is not None
        warnings = await self._api.warnings(unit.job)
        unit.warning = warnings[-1] if warnings else None

    def say(self, member: Member, text: str) -> None:
        """Write a note into the attempt's log, each once."""
        if text not in member.said and len(member.said) < _MOST_NOTES:
            member.said.add(text)
            self._in_background(self._write(member, text))

    async def _write(self, member: Member, text: str) -> None:
        documents = self._documents(member.attempt)
        with contextlib.suppress(ObjectsError):
            await documents.calls.call(documents.note, text)

    def is_hopeless(self, pod: PodSeen) -> bool:
        return pod.reason in HOPELESS

    async def give_up(self, member: Member, pod: PodSeen) -> None:
        """End the attempt, and delete its pod."""
        with contextlib.suppress(EngineError, ObjectsError):
            await give_up_waiting(pod, self._documents(member.attempt))
            await self._api.delete_pod(pod.name, 0 if not pod.has_node else 1)
