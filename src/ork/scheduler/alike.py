"""What the specs of many attempts say alike is put into words once: a wide run asks for the same work over and over."""

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

MOST_KINDS = 100
OWN = frozenset({"v", "attempt", "task", "number", "traceparent"})  # what tells even plain tasks apart


def is_plain(key: TaskKey, spec: TaskSpec, config: WorkerConfig | None) -> bool:
    """Nothing but its name and number sets it apart from others that do the same."""
    return (
        key.index is None
        and config is None
        and spec.environment is None
        and spec.image is None
        and spec.resources is None
        and spec.output_type is None
        and not (spec.inputs or spec.env or spec.depends_on or spec.input_types)
    )


class Alike:
    """Texts for `documents.sign`."""

    def __init__(self, options: SchedulerOptions) -> None:
        self._about_options = _about_options(options)
        self._last_run: tuple[Run, list[str], bytes] | None = None
        self._kinds: dict[Hashable, bytes] = {}
        self._of_last_run: dict[Hashable, bytes] = {}  # about both

    def about(self, run: Run) -> bytes:
        """What all attempts of the run are told."""
        return self._look_at(run)[2]

    def sealed_params(self, run: Run) -> list[str]:
        """Names of the run's sensitive params. What `about` says is without their values."""
        return self._look_at(run)[1]

    def _look_at(self, run: Run) -> tuple[Run, list[str], bytes]:
        if self._last_run is None or self._last_run[0] is not run:
            sealed = sealed_names(run.params)
            self._last_run = run, sealed, documents.entries(_about_run(run, sealed) | self._about_options)
            self._of_last_run.clear()
        return self._last_run

    def about_kind(self, run: Run, kind: Hashable, document: Callable[[], dict[str, Any]]) -> bytes:
        """What all plain tasks of that kind and run are told, of which one is the document."""
        of_run = self.about(run)
        text = self._of_last_run.get(kind)
        if text is None:
            text = self._of_last_run[kind] = b"%b,%b" % (self._of_kind(kind, document), of_run)
        return text

    def _of_kind(self, kind: Hashable, document: Callable[[], dict[str, Any]]) -> bytes:
        text = self._kinds.get(kind)
        if text is None:
            if len(self._kinds) >= MOST_KINDS:
                self._kinds.clear()
                self._of_last_run.clear()
            text = documents.entries({name: value for name, value in document().items() if name not in OWN})
            self._kinds[kind] = text
        return text


def _about_run(run: Run, sealed: list[str]) -> dict[str, Any]:
    return {
        "run_id": run.id,
        "workflow": run.workflow,
        "round": run.round,
        "scheduled_for": run.scheduled_for.isoformat() if run.scheduled_for else None,
        "params": {name: value for name, value in run.params.items() if name not in sealed} if sealed else run.params,
        **({"sealed_params": sealed} if sealed else {}),
    }


def _about_options(options: SchedulerOptions) -> dict[str, Any]:
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
