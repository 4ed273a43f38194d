"""Durations of earlier runs of a workflow and their tasks, used for estimates about the current run."""

from __future__ import annotations

from bisect import bisect_left

from ork.model.run import RunStatus
from ork.model.task import Task, TaskStatus
from ork.state.reading import StateReader
from ork.state.records import RunFilter

RUNS = 20
# Reading all tasks of twenty runs must stay cheap; for larger workflows only run durations are compared.
MAX_TASKS = 200


class History:
    """Durations in seconds of the last successful runs, and of each task in them."""

    def __init__(self, runs: list[float], tasks: dict[str, list[float]]) -> None:
        self._runs = sorted(runs)
        self._tasks = {name: sorted(lengths) for name, lengths in tasks.items()}

    @property
    def run_count(self) -> int:
        return len(self._runs)

    @property
    def median(self) -> float | None:
        return self._runs[len(self._runs) // 2] if self._runs else None

    def seconds_left(self, elapsed: float) -> float | None:
        """Estimated from the median of the runs that took longer than `elapsed`; None if there are none."""
        longer = self._runs[bisect_left(self._runs, elapsed) :]
        return longer[len(longer) // 2] - elapsed if longer else None

    def slower_than(self, task: str, seconds: float) -> str | None:
        """`slower than 19 of the last 20`; None unless the task is slower than nine in ten."""
        lengths = self._tasks.get(task, [])
        beaten = bisect_left(lengths, seconds)
        if len(lengths) < 5 or beaten * 10 < len(lengths) * 9:
            return None
        return f"slower than {beaten} of the last {len(lengths)}"


async def load_history(store: StateReader, workflow: str, task_count: int) -> History:
    page = await store.list_runs(RunFilter(workflow=workflow, statuses=frozenset({RunStatus.SUCCESS}), limit=RUNS))
    spans = [(run.started_at, run.finished_at) for run in page.runs]
    lengths = [(end - start).total_seconds() for start, end in spans if start and end]
    tasks: dict[str, list[float]] = {}
    for run in page.runs if task_count <= MAX_TASKS else ():
        update = await store.run_updates(run.id)
        for task in update.tasks if update else ():
            _remember(tasks, task)
    return History(lengths, tasks)


def _remember(lengths: dict[str, list[float]], task: Task) -> None:
    # A fanned-out task lasts as long as all its instances together, so instances are compared instead.
    if task.status is TaskStatus.SUCCESS and task.started_at and task.finished_at and not task.instances:
        lengths.setdefault(task.key.name, []).append((task.finished_at - task.started_at).total_seconds())
