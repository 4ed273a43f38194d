"""Answers the questions of run machines: values too large for the state store, and cached results of equal tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from ork.compile.content import action_document
from ork.core.bind import BindError, Bound, walk
from ork.core.events import Answered, CacheAnswer, Event
from ork.core.prepare import CACHE, NoSuchPath, Question, Unanswerable
from ork.errors import DocumentError, ObjectsError
from ork.model.digest import sha256
from ork.model.ids import RunId
from ork.model.task import InlineOutput, StoredOutput
from ork.model.value_reference import IN_TEXT, references_below, without_places
from ork.model.workflow import TaskSpec
from ork.objects.attempt_documents import AttemptDocuments, Found
from ork.objects.calls import DocumentCalls, in_thread
from ork.objects.json_text import strict_json
from ork.objects.references import references_of
from ork.scheduler.options import SchedulerOptions
from ork.scheduler.runs import Owned, OwnedRuns
from ork.state.reading import StateReader

RETRY_SECONDS = 1.0
Feed: TypeAlias = Callable[[Sequence[tuple[RunId, Event]], datetime], None]


class QuestionResolver:
    def __init__(
        self, store: StateReader, objects: AttemptDocuments, options: SchedulerOptions, monotonic: Callable[[], float]
    ) -> None:
        self._store = store
        self._objects = objects
        self._calls = DocumentCalls(objects)
        self._limit = options.value_limit
        self._code_hash = options.code_hash
        self._grace = options.close_grace_seconds
        self._monotonic = monotonic
        self._missed: dict[str, float] = {}  # missing objects, and since when they are missing
        self._unanswered: list[tuple[RunId, Question]] = []

    @property
    def next_try(self) -> float | None:
        """When unanswered questions are retried."""
        return self._monotonic() + RETRY_SECONDS if self._unanswered else None

    def forget(self) -> None:
        self._unanswered.clear()

    async def resolve_all(self, runs: OwnedRuns, feed: Feed, now: datetime) -> None:
        """Repeat until no question is left: an answer may lead to the next question."""
        questions, self._unanswered = [*self._unanswered, *runs.take_questions()], []
        while questions:
            await self._calls.for_each(lambda each: self._answer_one(*each, runs, feed, now), questions)
            questions = runs.take_questions()

    async def _answer_one(self, run: RunId, question: Question, runs: OwnedRuns, feed: Feed, now: datetime) -> None:
        owned = runs.get(run)
        if owned is None:
            return
        try:
            answer = await self.answer(question, owned, now)
        except ObjectsError:
            self._unanswered.append((run, question))
            return
        if runs.get(run) is owned:
            feed([(run, Answered(question, answer))], now)

    async def answer(self, question: Question, owned: Owned, now: datetime) -> Any:
        """The answer to one question. ObjectsError means that it must be retried later."""
        if question.about == CACHE:
            return await self._look_in_cache(question, owned, now)
        assert question.bound is not None
        try:
            return await self._value(question.bound)
        except BindError as problem:
            return NoSuchPath(problem.message)
        except DocumentError as problem:
            return Unanswerable(problem.message)

    async def _value(self, bound: Bound) -> Any:
        references = references_of(bound)
        found = await self._calls.call(self._objects.read_values, references, self._limit) if references else ()
        return self._opened(bound, dict(zip(references, found, strict=True)))

    def _opened(self, bound: Bound, found: Mapping[str, Found]) -> Any:
        if "list" in bound:
            return [self._opened(part, found) for part in bound["list"]]
        if "object" not in bound:
            return bound.get("value")
        data = found[bound["object"]]
        if isinstance(data, ObjectsError):
            raise data
        if data is None:
            raise self._missing(bound["object"])
        self._missed.pop(bound["object"], None)
        return walk(strict_json(data, max_size=self._limit), bound["path"], bound["object"])

    def _missing(self, key: str) -> ObjectsError:
        """A retryable error during the grace period, in which documents may become visible late; then a final one."""
        mono = self._monotonic()
        if mono - self._missed.setdefault(key, mono) < self._grace:
            return ObjectsError(f"the output {key} cannot be seen yet")
        del self._missed[key]
        return DocumentError(f"the output {key} is not in the object store any more")

    async def _look_in_cache(self, question: Question, owned: Owned, now: datetime) -> CacheAnswer | Unanswerable:
        machine = owned.machine
        spec = machine.spec(question.key)
        try:
            key = await self._cache_key(question, owned, spec)
        except BindError as problem:
            return Unanswerable(problem.message)
        cached = await self._store.find_cached(key, now - timedelta(seconds=spec.cache or 0.0))
        if cached is None or not await self._exists(cached.output):
            return CacheAnswer(key)
        return CacheAnswer(key, cached.run, cached.output)

    async def _exists(self, output: object) -> bool:
        """Whether a cached output, and each value that it refers to, is still in the object store."""
        references = [output.key] if isinstance(output, StoredOutput) else []
        if isinstance(output, InlineOutput) and IN_TEXT in output.json:
            references = [str(each["object"]) for each in references_below(json.loads(output.json))]
        for reference in references:
            if not await self._calls.call(self._objects.has_value, reference):
                return False
        return True

    async def _cache_key(self, question: Question, owned: Owned, spec: TaskSpec) -> str:
        """A hash of the task, its code, its environment and its input values: of the data, not of where it is stored."""
        machine, scope = owned.machine, owned.machine.scope(question.key)
        position = machine.position(question.key)
        work = {
            "task": [machine.workflow.name, spec.name, position.index, position.count],
            "action": action_document(spec.action),
            "code": self._code_hash(owned.version, spec),
            "environment": repr(spec.environment) if spec.image is None else spec.image,
            "inputs": [[name, scope.bind(value)] for name, value in spec.inputs],
            "env": [[name, scope.bind(value)] for name, value in spec.env],
            "upstream": [[name, scope.upstream(name)] for name in spec.depends_on],
            "item": scope.item(),
            "params": machine.run.params,
        }
        work = {**work, **await self._by_content({name: work[name] for name in ("inputs", "env", "upstream", "item")})}
        return sha256(json.dumps(work, sort_keys=True).encode()).hexdigest()

    async def _by_content(self, bound: dict[str, Any]) -> dict[str, Any]:
        """The bindings, with hashes in place of stored outputs and of values that are not JSON."""
        text = json.dumps(bound)
        if '"object"' not in text and IN_TEXT not in text:
            return bound
        named = [*bound["inputs"], *bound["env"], *bound["upstream"], ["item", bound["item"] or {}]]
        references = [reference for _, each in named for reference in references_of(each)]
        found = await self._calls.call(self._objects.read_values, references, self._limit) if references else ()
        hashes = {}
        for reference, data in zip(references, found, strict=True):
            if isinstance(data, bytes):  # otherwise its name stays, which no other run has
                hashes[reference] = await in_thread(_content_hash, data)
        content: dict[str, Any] = _with_hashes(without_places(bound), hashes)
        return content


def _content_hash(data: bytes) -> str:
    if IN_TEXT.encode() in data:
        data = json.dumps(without_places(json.loads(data)), sort_keys=True).encode()
    return str(sha256(data).hexdigest())


def _with_hashes(value: Any, hashes: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        if value.get("object") in hashes and "path" in value:
            return {"sha256": hashes[value["object"]], "path": value["path"]}
        return {name: _with_hashes(member, hashes) for name, member in value.items()}
    return [_with_hashes(item, hashes) for item in value] if isinstance(value, list) else value
