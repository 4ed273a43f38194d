"""The workflow's graph as one run sees it: who waits for whom, and what is known about those above."""

from __future__ import annotations

from ork.core.fanout import Group
from ork.core.limits import Lane, lane_of
from ork.core.prepare import is_plain
from ork.core.rules import Upstream
from ork.model.ids import TaskKey
from ork.model.record import Record
from ork.model.task import Task, TaskStatus
from ork.model.workflow import CompiledWorkflow, RunIf, TaskSpec


class Node(Record, frozen=False):
    spec: TaskSpec
    key: TaskKey  # of the task as a whole
    is_plain: bool  # nothing has to be looked up before it starts, and there is one of it
    ordinal: int
    lane: Lane
    below: list[Node]
    upstream: Upstream
    group: Group | None = None  # once it has fanned out

    def forget_upstream(self) -> None:
        if self.upstream.waiting != len(self.spec.depends_on):  # it has heard of one of them
            self.upstream = Upstream(waiting=len(self.spec.depends_on))

    def hear_of(self, ended: Task) -> None:
        """One of the tasks above has ended."""
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


def link(workflow: CompiledWorkflow) -> dict[str, Node]:
    lanes: dict[object, Lane] = {}  # equal ones are one object: most of a wide workflow's tasks have the same
    nothing_above = Upstream(0)  # of which nobody ever hears: one for all
    nodes = {}
    for ordinal, spec in enumerate(workflow.tasks):
        counts_as = (spec.executor, spec.pool, None if spec.rate is None else spec.name)
        lane = lanes.get(counts_as)
        if lane is None:
            lane = lanes[counts_as] = lane_of(workflow.name, spec)
        upstream = Upstream(len(spec.depends_on)) if spec.depends_on else nothing_above
        nodes[spec.name] = Node(spec, TaskKey(spec.name), is_plain(spec), ordinal, lane, [], upstream)
    for spec in workflow.tasks:
        for above in spec.depends_on:
            nodes[above].below.append(nodes[spec.name])
    return nodes
