"""The workflow's graph within one run: the dependencies of each task, and how its upstream tasks ended."""

from __future__ import annotations

from ork.core.fanout import Group
from ork.core.limits import Lane, lane_of
from ork.core.prepare import is_plain
from ork.core.rules import Upstream
from ork.model.ids import TaskKey
from ork.model.record import Record
from ork.model.task import Task, TaskStatus
from ork.model.workflow import CompiledWorkflow, RunIf, TaskSpec


class TaskNode(Record, frozen=False):
    spec: TaskSpec
    key: TaskKey  # of the whole task, without an index
    is_plain: bool  # no condition and no fan-out
    ordinal: int
    lane: Lane
    below: list[TaskNode]
    upstream: Upstream
    group: Group | None = None  # set once it has fanned out

    def forget_upstream(self) -> None:
        if self.upstream.waiting != len(self.spec.depends_on):  # at least one upstream task has ended
            self.upstream = Upstream(waiting=len(self.spec.depends_on))

    def count_upstream_end(self, ended: Task) -> None:
        """Count an upstream task that has ended."""
        upstream = self.upstream
        upstream.waiting -= 1
        if ended.status is TaskStatus.SUCCESS:
            upstream.succeeded += 1
            return
        upstream.culprit = upstream.culprit or str(ended.key)
        root = ended.key if ended.status is TaskStatus.FAILED else ended.cause
        if root is None:
            upstream.other += 1
        else:
            upstream.failed += 1
            upstream.cause = upstream.cause or root

    @property
    def skip_reason(self) -> str:
        if self.spec.run_if is RunIf.ANY_FAILED:
            return "run_if any_failed: nothing above it failed"
        if self.spec.run_if is RunIf.ANY_SUCCESS:
            return "run_if any_success: nothing above it succeeded"
        if self.upstream.cause is not None:
            return f"{self.upstream.cause} failed"
        return f"{self.upstream.culprit} did not run"


def link(workflow: CompiledWorkflow) -> dict[str, TaskNode]:
    lanes: dict[object, Lane] = {}  # equal lanes share one object: most tasks of a wide workflow have the same lane
    nothing_above = Upstream(0)  # never changed, so one for all tasks without dependencies
    nodes = {}
    for ordinal, spec in enumerate(workflow.tasks):
        counts_as = (spec.executor, spec.pool, None if spec.rate is None else spec.name)
        lane = lanes.get(counts_as)
        if lane is None:
            lane = lanes[counts_as] = lane_of(workflow.name, spec)
        upstream = Upstream(len(spec.depends_on)) if spec.depends_on else nothing_above
        nodes[spec.name] = TaskNode(spec, TaskKey(spec.name), is_plain(spec), ordinal, lane, [], upstream)
    for spec in workflow.tasks:
        for above in spec.depends_on:
            nodes[above].below.append(nodes[spec.name])
    return nodes
