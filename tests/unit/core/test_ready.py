"""Tasks in line: the most urgent first, and a crowd before a full limit in nobody's way."""

from __future__ import annotations

from itertools import islice

from ork.core.graph import TaskNode, link
from ork.core.limits import EVERYTHING, UNLIMITED, Capacity, task_rate
from ork.core.ready import ReadyTasks
from ork.model.ids import TaskKey
from ork.model.workflow import Command, CompiledWorkflow, Const, Rate, TaskSpec

TRUE = Command((Const("true"),))


def spec(name: str, *, priority: int = 0, pool: str | None = None, rate: Rate | None = None) -> TaskSpec:
    return TaskSpec(name, "process", TRUE, priority=priority, pool=pool, rate=rate)


def nodes(*specs: TaskSpec) -> dict[str, TaskNode]:
    return link(CompiledWorkflow("flow", specs))


def lined_up(*specs: TaskSpec) -> ReadyTasks:
    ready = ReadyTasks()
    for name, node in nodes(*specs).items():
        ready.push(TaskKey(name), node)
    return ready


def capacity_without(*full: str) -> Capacity:
    capacity = Capacity()
    capacity.exhaust(full)
    return capacity


def names(ready: ReadyTasks, *full: str) -> list[str]:
    return [key.name for key in ready.pop_open(capacity_without(*full))]


def test_tasks_are_popped_by_priority_across_lanes() -> None:
    ready = lined_up(spec("a"), spec("b", pool="p", priority=2), spec("c", priority=1), spec("d", pool="p"))
    assert names(ready) == ["b", "c", "a", "d"]


def test_tasks_of_a_full_limit_are_skipped_and_stay_queued() -> None:
    ready = lined_up(spec("a", pool="p"), spec("b"), spec("c", pool="p"))
    assert names(ready, "pool:p") == ["b"]
    assert ready.has_any(UNLIMITED)
    assert not ready.has_any(capacity_without("pool:p"))
    assert names(ready) == ["a", "c"]


def test_tasks_of_a_nearly_full_limit_do_not_block_other_lanes() -> None:
    ready = lined_up(*(spec(f"p{n}", pool="p", priority=1) for n in range(3)), spec("a"), spec("b"))
    capacity = capacity_without("pool:p")
    capacity.release(["pool:p", EVERYTHING])  # of the whole nothing is known
    taken = []
    for key in ready.pop_open(capacity):
        taken.append(key.name)
        capacity.reserve(["pool:p"] if key.name.startswith("p") else [])
    assert taken == ["p0", "a", "b"]


def test_tasks_that_are_not_popped_stay_queued() -> None:
    ready = lined_up(spec("a"), spec("b"), spec("c"))
    assert [key.name for key in islice(ready.pop_open(UNLIMITED), 2)] == ["a", "b"]
    assert names(ready) == ["c"]
    assert not ready.has_any(UNLIMITED)


def test_a_task_is_queued_only_once() -> None:
    ready, (node,) = ReadyTasks(), nodes(spec("a")).values()
    ready.push(TaskKey("a"), node)
    ready.push(TaskKey("a"), node)
    assert names(ready) == ["a"]


def test_a_full_rate_of_one_task_does_not_delay_others() -> None:
    ready = lined_up(spec("a", rate=Rate(1, 60.0)), spec("b", rate=Rate(1, 60.0)), spec("c"))
    assert names(ready, task_rate("flow", "a")) == ["b", "c"]


def test_tasks_without_limits_of_their_own_share_one_lane() -> None:
    lanes = {id(node.lane) for node in nodes(*(spec(f"t{n}") for n in range(50))).values()}
    assert len(lanes) == 1
    assert all(EVERYTHING in node.lane for node in nodes(spec("a"), spec("b", pool="p")).values())
