"""What the scheduler does with launch groups: one order, one batch of specs, and patience with what waits inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ork.executors.executor import ExecutorTraits, GroupOrder, NotStarted, Presence, StatusCallback
from ork.model.ids import AttemptKey
from ork.model.task import Attempt
from ork.model.workflow import Const
from ork.objects import documents
from tests.unit.core.flows import spec, workflow

from .bench_top import BenchTop, HandExecutor

START_LIMIT = 300.0


class GroupExecutor(HandExecutor):
    """Starts groups, too. The test says which attempts its platform has started (`alive`)."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[GroupOrder] = []
        self.is_there = True  # a unit of the group
        self.traits = ExecutorTraits(fences_itself=True, starts_groups=100)

    async def start_groups(self, groups: Sequence[GroupOrder], news: StatusCallback) -> Sequence[NotStarted]:
        self.groups += groups
        self.started += [order for group in groups for order in group.orders]
        return []

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        missing = Presence.QUEUED if self.is_there else Presence.GONE
        return [Presence.RUNNING if attempt.key in self.alive else missing for attempt in attempts]


class Top(BenchTop):
    """A run with a fan-out of four, of which one may run at a time."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(workflow(spec("load", foreach=Const([1, 2, 3, 4]), **{"concurrency": 1, **fields})))
        self.executor: GroupExecutor = GroupExecutor()
        self.scheduler = self.new_scheduler("ann")
        self.id = self.create()
        self.step(2)

    def key(self, index: int, number: int = 1) -> AttemptKey:
        return next(
            order.attempt.key
            for order in self.executor.started
            if (order.attempt.key.task.index, order.attempt.key.number) == (index, number)
        )

    def order_of(self, key: AttemptKey) -> Any:
        return next(order for order in reversed(self.executor.started) if order.attempt.key == key)

    def write(self, key: AttemptKey, state: str, seq: int) -> None:
        """What the worker of an attempt would do: win the gate, and write a status."""
        sign = self.order_of(key).attempt.token_hash
        at = self.clock.now().isoformat()
        gate = {"v": 1, "attempt": str(key), "state": "started"}
        self.objects.claim_gate(str(key), documents.sign(gate, sign))
        status = {"v": 1, "attempt": str(key), "seq": seq, "state": state, "at": at, "started_at": at}
        more = {"finished_at": at, "exit_code": 0} if state != "running" else {}
        self.objects.put_status(str(key), documents.sign(status | more, sign))
        self.scheduler.on_status(key)

    def pass_time(self, seconds: float, every: float = 10.0) -> None:
        while seconds > 0:
            self.clock.advance(min(every, seconds))
            seconds -= every
            self.step(2)

    def take_over(self) -> None:
        """Another scheduler takes the place of this one, which died."""
        self.do(self.store.expire([self.scheduler.lease.id]))
        self.scheduler = self.new_scheduler("ben")
        self.step(3)


def test_the_executor_gets_one_order_with_all_attempts_and_their_specs_are_written_together() -> None:
    top = Top()
    (group,) = top.executor.groups
    assert (group.id, group.parallelism) == (str(top.key(0)), 1)
    assert [order.attempt.key.task.index for order in group.orders] == [0, 1, 2, 3]
    assert all(top.objects.read_spec(str(order.attempt.key)) is not None for order in group.orders)


def test_tokens_follow_from_the_key_of_the_group_and_those_of_other_groups_do_not() -> None:
    top = Top()
    (group,) = top.executor.groups
    make = documents.token_maker(bytes.fromhex(group.key))
    for order in group.orders:
        assert make(str(order.attempt.key)) == order.token
        assert documents.token_hash(order.token) == order.attempt.token_hash
    signing_key = top.do(top.store.signing_key())
    assert documents.group_key(signing_key, group.id).hex() == group.key
    assert documents.group_key(signing_key, "another") != bytes.fromhex(group.key)
    assert documents.derive_token(signing_key, str(top.key(0))) != group.orders[0].token


def test_an_attempt_that_waits_inside_its_group_is_not_given_up_while_others_run() -> None:
    top = Top()
    top.executor.alive.add(top.key(0))
    for beat in range(1, 80):
        top.write(top.key(0), "running", beat)
        top.pass_time(10.0)
    assert top.statuses(top.id)["load[3]"] == "dispatched"
    assert top.do(top.store.list_attempts(top.id, top.key(3).task))[0].closing is None


def test_nor_while_one_after_the_other_runs_also_when_the_scheduler_changes() -> None:
    top = Top()
    for index in range(3):
        top.executor.alive = {top.key(index)}
        for beat in range(1, 25):
            top.write(top.key(index), "running", beat)
            top.pass_time(10.0)
        top.write(top.key(index), "success", 99)
        top.step(2)
        top.pass_time(20.0)
        if index < 2:
            top.take_over() if index == 0 else None
    assert top.statuses(top.id) == {
        "load": "running", "load[0]": "success", "load[1]": "success", "load[2]": "success", "load[3]": "dispatched",
    }  # fmt: skip


def test_a_group_that_makes_no_progress_is_given_up_after_the_start_limit() -> None:
    top = Top()
    top.pass_time(START_LIMIT - 20)
    assert top.statuses(top.id)["load[0]"] == "dispatched"
    top.pass_time(60)
    assert top.statuses(top.id)["load[0]"] == "failed"


def test_the_start_limit_counts_from_when_the_platform_started_the_attempt_for_every_owner() -> None:
    top = Top()
    top.executor.alive.add(top.key(0))
    for beat in range(1, 40):
        top.write(top.key(0), "running", beat)
        top.pass_time(10.0)
    top.write(top.key(0), "success", 99)
    top.executor.alive = {top.key(1)}  # its container is pulled, for a long time
    top.step(2)
    top.pass_time(200)
    top.take_over()
    assert top.statuses(top.id)["load[1]"] == "dispatched"
    top.pass_time(150)
    assert top.statuses(top.id)["load[1]"] == "failed"


def test_a_scheduler_that_died_before_the_start_is_followed_by_one_that_gives_the_same_order() -> None:
    top = Top()
    first, top.executor.groups[:] = top.executor.groups[0], []
    top.executor.is_there = False
    top.take_over()
    (again,) = top.executor.groups
    assert (again.id, again.parallelism, again.key) == (first.id, first.parallelism, first.key)
    assert [order.attempt.key for order in again.orders] == [order.attempt.key for order in first.orders]
    assert [order.token for order in again.orders] == [order.token for order in first.orders]


def test_instances_that_failed_come_back_as_one_smaller_group() -> None:
    top = Top(retries=1, retry_delay=1.0, concurrency=None)
    for index in range(4):
        top.executor.alive.add(top.key(index))
        top.write(top.key(index), "running", 1)
    top.step(2)
    for index in (1, 3):
        top.write(top.key(index), "failed", 2)
    top.step(2)
    top.pass_time(20.0)
    assert [len(group.orders) for group in top.executor.groups] == [4, 2]
    assert [str(order.attempt.key) for order in top.executor.groups[1].orders] == [
        f"{top.id}/load/1/2",
        f"{top.id}/load/3/2",
    ]


def test_a_queued_attempt_of_a_cancelled_run_never_starts_and_is_over_at_once() -> None:
    from ork.model.run import CommandKind, RunCommand

    top = Top()
    top.do(top.store.submit_command(RunCommand(top.id, CommandKind.CANCEL, by="eve"), top.clock.now()))
    top.scheduler.wake()
    top.step(4)
    assert set(top.statuses(top.id).values()) == {"cancelled"}
    gate = {"v": 1, "attempt": str(top.key(2)), "state": "started"}
    assert not top.objects.claim_gate(str(top.key(2)), documents.sign(gate, "00" * 32))


def test_an_executor_without_the_trait_gets_no_groups() -> None:
    top = BenchTop(workflow(spec("load", foreach=Const([1, 2, 3]))))
    top.create()
    top.step(2)
    assert [order.attempt.group for order in top.executor.started] == [None, None, None]
