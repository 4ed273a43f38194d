"""The workflow's graph within one run: the dependencies of each task, how its upstream tasks ended, and whether it may start."""

from __future__ import annotations

from enum import StrEnum

from ork.core.fanout import Group
from ork.core.launch_groups import GroupSize, no_groups
from ork.core.limits import Lane, lane_of
from ork.model.ids import TaskKey
from ork.model.record import Record
from ork.model.task import Task, TaskStatus
from ork.model.workflow import CompiledWorkflow, RunIf, TaskSpec


class StartVerdict(StrEnum):
    WAIT = "wait"
    START = "start"
    SKIP = "skip"


class Upstream(Record, frozen=False):
    """How the upstream tasks of one task have ended so far. `failed` includes those skipped because of a failure."""

    waiting: int
    succeeded: int = 0
    failed: int = 0
    other: int = 0  # skipped by a condition or rule, or cancelled
    cause: TaskKey | None = None  # root of the first failure
    culprit: str | None = None  # the direct upstream task without success, shown to people


def judge(rule: RunIf, upstream: Upstream) -> StartVerdict:
    """ALL_SUCCESS is decided by the first upstream task without success; the other rules wait for all."""
    if rule is RunIf.ALL_SUCCESS and (upstream.failed or upstream.other):
        return StartVerdict.SKIP
    if upstream.waiting:
        return StartVerdict.WAIT
    if rule is RunIf.ANY_FAILED:
        return StartVerdict.START if upstream.failed else StartVerdict.SKIP
    if rule is RunIf.ANY_SUCCESS:
        return StartVerdict.START if upstream.succeeded else StartVerdict.SKIP
    return StartVerdict.START


class TaskNode(Record, frozen=False):
    spec: TaskSpec
    key: TaskKey  # of the whole task, without an index
    is_plain: bool  # no condition and no fan-out
    ordinal: int
    lane: Lane
    below: list[TaskNode]
    upstream: Upstream
    group: Group | None = None  # set once it has fanned out
    group_size: int = 0  # the largest launch group of its instances; 0: each starts alone

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


def link(workflow: CompiledWorkflow, group_size: GroupSize = no_groups) -> dict[str, TaskNode]:
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
        if spec.fans_out:
            nodes[spec.name].group_size = group_size(spec)
    for spec in workflow.tasks:
        for above in spec.depends_on:
            nodes[above].below.append(nodes[spec.name])
    return nodes


def is_plain(spec: TaskSpec) -> bool:
    """True if the task has no condition and no fan-out."""
    return not spec.when and not spec.fans_out
