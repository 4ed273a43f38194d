"""Serialises the parts that many specs have in common only once. A wide run creates thousands of similar specs."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from ork.model.ids import TaskKey
from ork.model.infra import WorkerConfig
from ork.model.run import Run
from ork.model.sealed import sealed_names
from ork.model.workflow import TaskSpec
from ork.objects import documents
from ork.scheduler.options import SchedulerOptions

MAX_KINDS = 100
OWN = frozenset({"v", "attempt", "task", "number", "traceparent"})  # entries that differ for each attempt


def has_shared_text(key: TaskKey, spec: TaskSpec, config: WorkerConfig | None) -> bool:
    """True if the spec differs only in its own entries from the specs of other tasks that call the same function."""
    return (
        key.index is None
        and config is None
        and spec.environment is None
        and spec.image is None
        and spec.resources is None
        and spec.output_type is None
        and not (spec.inputs or spec.env or spec.depends_on or spec.input_types)
    )


class SpecTemplate:
    """Serialised entries for `documents.sign`, cached per run and per kind of task."""

    def __init__(self, options: SchedulerOptions) -> None:
        self._options_document = _options_document(options)
        self._last_run: tuple[Run, list[str], bytes] | None = None
        self._kinds: dict[Hashable, bytes] = {}
        self._of_last_run: dict[Hashable, bytes] = {}  # entries of the kind and of the run together

    def for_run(self, run: Run) -> bytes:
        """Entries that the specs of all attempts of the run have in common."""
        return self._of_run(run)[2]

    def sealed_params(self, run: Run) -> list[str]:
        """Names of the run's sensitive params. `for_run` leaves their values out."""
        return self._of_run(run)[1]

    def _of_run(self, run: Run) -> tuple[Run, list[str], bytes]:
        if self._last_run is None or self._last_run[0] is not run:
            sealed = sealed_names(run.params)
            self._last_run = run, sealed, documents.entries(_run_document(run, sealed) | self._options_document)
            self._of_last_run.clear()
        return self._last_run

    def for_kind(self, run: Run, kind: Hashable, document: Callable[[], dict[str, Any]]) -> bytes:
        """Entries that all tasks of this kind and run have in common, taken from the document of one of them."""
        of_run = self.for_run(run)
        text = self._of_last_run.get(kind)
        if text is None:
            text = self._of_last_run[kind] = b"%b,%b" % (self._of_kind(kind, document), of_run)
        return text

    def _of_kind(self, kind: Hashable, document: Callable[[], dict[str, Any]]) -> bytes:
        text = self._kinds.get(kind)
        if text is None:
            if len(self._kinds) >= MAX_KINDS:
                self._kinds.clear()
                self._of_last_run.clear()
            text = documents.entries({name: value for name, value in document().items() if name not in OWN})
            self._kinds[kind] = text
        return text


def _run_document(run: Run, sealed: list[str]) -> dict[str, Any]:
    return {
        "run_id": run.id,
        "workflow": run.workflow,
        "round": run.round,
        "scheduled_for": run.scheduled_for.isoformat() if run.scheduled_for else None,
        "params": {name: value for name, value in run.params.items() if name not in sealed} if sealed else run.params,
        **({"sealed_params": sealed} if sealed else {}),
    }


def _options_document(options: SchedulerOptions) -> dict[str, Any]:
    return {
        "script_dir": options.script_dir,
        "builds": options.builds_dir,
        "task_user": options.task_user,
        "heartbeat_seconds": options.heartbeat_seconds,
        "fence_seconds": options.fence_seconds,
        "stop_grace_seconds": options.stop_grace_seconds,
        "inline_limit": options.inline_limit,
        "output_limit": options.output_limit,
        "durability": options.durability,
        "wake_url": options.wake_url,
    }
