"""Random workflows, and simulated users who send random commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from typing import Any

from ork.compile.content import make_version
from ork.core.limits import EVERYTHING
from ork.errors import StoreError
from ork.model.ids import ID_ALPHABET, RUN_ID_LENGTH, RunId, TaskKey
from ork.model.installation import Control, Mode
from ork.model.record import replaced
from ork.model.run import CommandKind, NewRun, RunCommand
from ork.model.workflow import (
    Command,
    CompiledWorkflow,
    Const,
    OnUnreachable,
    RetryOn,
    RunIf,
    TaskSpec,
    Trigger,
    Version,
)
from ork.state.store import StateStore
from ork.testing.clock import EPOCH
from ork.testing.faults import SimulatedProcess
from ork.testing.language import Features, as_child, draw_params, enrich, with_children

EXECUTOR = "sim"
POOL = "narrow"
KINDS = (CommandKind.CANCEL, CommandKind.PAUSE, CommandKind.RESUME, CommandKind.RETRY)


def draw_workflow(random: Random, name: str) -> CompiledWorkflow:
    count = random.choice((1, 2, 3, 3, 4, 5, 6, 8, 12))
    tasks = tuple(_draw_task(random, number) for number in range(count))
    return CompiledWorkflow(
        name, tasks, fail_fast=random.random() < 0.2, max_active_runs=random.choice((None, None, 1, 2))
    )


def _draw_task(random: Random, number: int) -> TaskSpec:
    above = random.sample(range(number), k=min(number, random.choice((0, 1, 1, 2, 3))))
    retry_on = frozenset(RetryOn) if random.random() < 0.3 else frozenset({RetryOn.EXIT, RetryOn.LOST})
    return TaskSpec(
        name=f"t{number}",
        executor=EXECUTOR,
        action=Command((Const("true"),)),
        depends_on=tuple(f"t{other}" for other in sorted(above)),
        retries=random.choice((0, 0, 1, 2, 3)),
        retry_delay=random.choice((None, None, 0.0, random.uniform(1, 60))),
        retry_on=retry_on,
        timeout=random.choice((None, None, random.uniform(5, 90))),
        pool=POOL if random.random() < 0.3 else None,
        priority=random.choice((0, 0, 1, 5)),
        run_if=random.choice((*[RunIf.ALL_SUCCESS] * 4, *RunIf)) if above else RunIf.ALL_SUCCESS,
        on_unreachable=random.choice((*[OnUnreachable.RETRY] * 4, *OnUnreachable)),
    )


def draw_versions(random: Random, more: Random, kin: Random, features: Features) -> tuple[Version, ...]:
    """`more` draws what the language has beyond plain tasks, so that the graphs are the same with and without it; `kin`
    draws the workflows that others run as tasks."""
    workflows = [draw_workflow(random, f"w{number}") for number in range(random.choice((1, 1, 2)))]
    workflows = [enrich(workflow, more, features) for workflow in workflows]
    if features.children:
        workflows = _draw_family(workflows, kin, features)
    return tuple(make_version(workflow, "/project", None) for workflow in workflows)


def _draw_family(workflows: list[CompiledWorkflow], random: Random, features: Features) -> list[CompiledWorkflow]:
    grandchild = as_child(draw_workflow(random, "grandchild"))
    child = as_child(enrich(draw_workflow(random, "child"), random, features))
    child = with_children(child, grandchild.name, random, features.children / 2)
    return [*(with_children(each, child.name, random, features.children) for each in workflows), child, grandchild]


def draw_limits(random: Random) -> dict[str, int]:
    limits = {EVERYTHING: random.randint(1, 4), f"executor:{EXECUTOR}": random.randint(1, 4), f"pool:{POOL}": 1}
    return {name: slots for name, slots in limits.items() if random.random() < 0.4}


class SimulatedClient(SimulatedProcess):
    """A user's command line: it gets errors and retries, but does not crash."""

    async def _stumble(self) -> None:
        await self.kernel.pause(self.faults.random.uniform(0.0, 0.004))


class People:
    """Create runs and send commands at random times, and repeat what was not acknowledged."""

    def __init__(
        self,
        random: Random,
        client: SimulatedClient,
        store: StateStore,
        versions: tuple[Version, ...],
        more: Random | None = None,
        approvals: Callable[[], list[tuple[RunId, TaskSpec]]] = list,
    ) -> None:
        self.runs: list[RunId] = []
        self._workflow_of: dict[RunId, CompiledWorkflow] = {}  # of the runs that they created
        self.waiting_for_an_answer = 0
        self.have_acted = False
        self.triggers = random.choice((1, 2, 3))
        self._random = random
        self._client = client
        self._store = store
        self._versions = versions
        self._more = more  # None if only plain commands are sent
        self._approvals = approvals
        self._has_gone_home = False

    async def act(self, length: float) -> None:
        moments = sorted(self._random.uniform(0, length) for _ in range(self._random.choice((0, 1, 3, 6, 10))))
        triggers = [0.0] + [self._random.uniform(0, length / 2) for _ in range(self.triggers - 1)]
        plan = sorted([(at, self._trigger) for at in triggers] + [(at, self._command) for at in moments], key=_moment)
        for at, deed in plan:
            await self._client.kernel.pause(max(0.0, at - self._client.kernel.time))
            await deed()
        self.have_acted = True

    @property
    def are_done(self) -> bool:
        return self.have_acted and not self.waiting_for_an_answer

    async def sleep(self, seconds: float) -> None:
        await self._client.kernel.pause(seconds)

    async def sleep_until(self, moment: float) -> None:
        await self.sleep(max(0.0, moment - self._client.kernel.time))

    async def set_control(self, target: str, mode: Mode) -> None:
        await self._insist(self._store.set_control, Control(target, mode, "somebody", self._client.clock.now()))

    async def clear_control(self, target: str) -> None:
        await self._insist(self._store.clear_control, target)

    async def resume_all(self, every: float) -> None:
        """Resume everything, so that all runs can end."""
        self._has_gone_home = True
        while True:
            for run in self.runs:
                command = RunCommand(run, CommandKind.RESUME)
                await self._insist(self._store.submit_command, command, self._client.clock.now())
            await self._client.kernel.pause(every)

    async def cancel_all(self, every: float, runs: Callable[[], list[RunId]]) -> None:
        """Cancel runs that cannot continue."""
        while True:
            for run in runs():
                command = RunCommand(run, CommandKind.CANCEL, by="somebody")
                await self._insist(self._store.submit_command, command, self._client.clock.now())
            await self._client.kernel.pause(every)

    async def declare_dead(self, every: float, unanswered: Callable[[], list[tuple[RunId, TaskKey]]]) -> None:
        """Declare attempts dead whose machine is gone for ever."""
        while True:
            for run, task in unanswered():
                command = RunCommand(run, CommandKind.DECLARE_DEAD, by="somebody", task=str(task))
                await self._insist(self._store.submit_command, command, self._client.clock.now())
            await self._client.kernel.pause(every)

    async def decide(self, random: Random) -> None:
        """Decide approvals. At the end only those that would wait for ever are decided."""
        while True:
            await self._client.kernel.pause(random.uniform(3, 40))
            for run, spec in self._approvals():
                if self._has_gone_home and spec.timeout is not None:
                    continue
                kind = random.choice((CommandKind.APPROVE, CommandKind.APPROVE, CommandKind.REJECT, None, None))
                for _ in range(random.choice((1, 1, 2)) if kind is not None else 0):
                    command = RunCommand(run, kind or CommandKind.APPROVE, by="somebody", task=spec.name)
                    await self._insist(self._store.submit_command, command, self._client.clock.now())

    async def think_again(self, random: Random, length: float, ended: Callable[[], list[RunId]]) -> None:
        """Retry parts of finished runs."""
        for _ in range(random.choice((0, 1, 2))):
            await self._client.kernel.pause(random.uniform(0.2, 0.6) * length)
            runs = [run for run in ended() if run in self._workflow_of]
            if runs and not self._has_gone_home:
                run = random.choice(runs)
                command = RunCommand(run, CommandKind.RETRY, by="somebody", task=self._draw_part(random, run))
                await self._insist(self._store.submit_command, command, self._client.clock.now())

    async def _trigger(self) -> None:
        run = self._draw_run()
        (created,) = await self._insist(self._store.create_runs, [run], self._client.clock.now())
        self.runs.append(created.id)
        if run.scheduled_for is not None and self._random.random() < 0.5:
            again = replaced(run, id=self._draw_id(), priority=0)
            await self._insist(self._store.create_runs, [again], self._client.clock.now())

    def meddle(self, run: RunId) -> None:
        """Send a command right when an attempt of the run has ended."""
        if run not in self.runs:
            self.runs.append(run)  # a child run: from now on users send commands to it, too
        kind = self._random.choice((CommandKind.CANCEL, CommandKind.CANCEL, *KINDS))
        self._client.kernel.spawn("meddler", self._ask(run, kind), self._random.uniform(0.0, 0.02))

    async def _command(self) -> None:
        if self.runs:
            kind = self._random.choice((CommandKind.CANCEL, CommandKind.PAUSE, CommandKind.RESUME, *KINDS))
            await self._ask(self._random.choice(self.runs), kind)

    async def _ask(self, run: RunId, kind: CommandKind) -> None:
        everything = kind is CommandKind.RETRY and self._random.random() < 0.3
        command = RunCommand(run, kind, by="somebody", everything=everything)
        is_own = run in self._workflow_of
        if kind is CommandKind.RETRY and is_own and self._more is not None and self._more.random() < 0.5:
            command = replaced(command, everything=False, task=self._draw_part(self._more, run))
        await self._insist(self._store.submit_command, command, self._client.clock.now())

    async def _insist(self, call: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        self.waiting_for_an_answer += 1
        while True:
            try:
                answer = await call(*args)
            except StoreError:
                await self._client.kernel.pause(self._random.uniform(0.5, 5.0))
            else:
                self.waiting_for_an_answer -= 1
                return answer

    def _draw_run(self) -> NewRun:
        version = self._random.choice(self._versions)
        due = EPOCH + timedelta(hours=self._random.randint(0, 2)) if self._random.random() < 0.3 else None
        trigger = Trigger.SCHEDULE if due is not None else Trigger.MANUAL
        priority = self._random.choice((0, 0, 3))
        run = NewRun(
            self._draw_id(), version.workflow.name, version.id, trigger=trigger, scheduled_for=due, priority=priority
        )
        self._workflow_of[run.id] = version.workflow
        if self._more is None:
            return run
        return replaced(run, params=draw_params(self._more), fresh=self._more.random() < 0.2)

    def _draw_part(self, random: Random, run: RunId) -> str:
        """One task, or one instance of one."""
        tasks = self._workflow_of[run].tasks
        spec = random.choice([spec for spec in tasks if spec.fans_out] or tasks)
        return f"{spec.name}[{random.randint(0, 2)}]" if spec.fans_out and random.random() < 0.7 else spec.name

    def _draw_id(self) -> RunId:
        return RunId("".join(self._random.choice(ID_ALPHABET) for _ in range(RUN_ID_LENGTH)))


def _moment(entry: tuple[float, object]) -> float:
    return entry[0]
