"""Any history of calls gives the same answers from every store: what no single sentence says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ork.core.launch_groups import granted
from ork.model.ids import AttemptKey
from ork.model.record import replaced
from ork.model.run import CommandKind, RunStatus
from ork.model.task import Attempt, AttemptStatus, TaskStatus
from ork.model.workflow import Trigger
from ork.state.records import Claim, RunFilter
from ork.state.store import StateStore
from tests.conformance.conftest import STORES, Stores
from tests.conformance.state_samples import (
    ANN,
    BEN,
    NOW,
    attempt,
    changes,
    command,
    group_requests,
    later,
    launch_request,
    new_run,
    task,
    version,
)

TASKS = ("extract", "clean", "load")
STEPS = 120
ON_FIRESTORE = 10  # histories: each takes a few seconds there
Step = Callable[[StateStore], Awaitable[Any]]


class History:
    """Draws calls from a seed, guided by what the first store answered; the others must answer the same."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._claims: dict[str, list[Any]] = {ANN: [], BEN: []}
        self._runs: list[str] = []
        self._commands: list[int] = []
        self._asked: dict[AttemptKey, Attempt] = {}  # attempts of groups that a commit was asked to launch
        self._grouped: list[Attempt] = []  # those that were launched, as they were written
        self._moment = 0

    def next_step(self) -> tuple[str, Step]:
        self._moment += 1
        names = ("create", "create", "command", "register", "claim", "claim", "claim", "commit", "commit", "commit",
                 "commit", "renew", "expire", "release", "limits", "deploy", "sleep")  # fmt: skip
        name = self._random.choice(names)
        return name, getattr(self, f"_{name}")()

    def learn(self, name: str, answer: Any) -> None:
        if name == "create":
            self._runs += [run.id for run in answer]
        if name == "claim":
            for claimed in answer.runs:
                self._claims[self._random.choice((ANN, BEN))].append(claimed)
                self._claims[self._last_claimer].append(claimed)
            self._commands += [waiting.id for waiting in answer.commands]
        if name == "commit":
            admitted = [self._asked[key] for key in sorted(answer.admitted & self._asked.keys())]
            self._grouped += [granted(each, answer.parallelism) for each in admitted]
            self._asked.clear()

    def _deploy(self) -> Step:
        most = self._random.choice((None, 1, 2))
        flow = version("flow", TASKS, id=f"flow-{most}", max_active_runs=most)
        return lambda store: store.save_version(flow, origin=None, now=later(self._moment))

    def _create(self) -> Step:
        flow = version("free", TASKS) if self._random.random() < 0.5 else version("flow", TASKS, id="flow-None")
        options: dict[str, Any] = {"priority": self._random.randrange(3)}
        if self._random.random() < 0.3:
            options["key"] = self._random.choice("xyz")
        if self._random.random() < 0.3:
            options |= {"trigger": Trigger.SCHEDULE, "scheduled_for": later(self._random.randrange(5))}
        run = new_run(flow, f"{self._moment:04d}", **options)
        return lambda store: store.create_runs([run], later(self._moment))

    def _command(self) -> Step:
        asked = command(self._some_run(), self._random.choice(list(CommandKind)))
        return lambda store: store.submit_command(asked, later(self._moment))

    def _register(self) -> Step:
        who = self._random.choice((ANN, BEN))
        return lambda store: store.register(who, "somewhere", "scheduler", later(self._moment))

    def _claim(self) -> Step:
        who, room = self._random.choice((ANN, BEN)), self._random.randrange(4)
        self._last_claimer = who
        return lambda store: store.claim_runs(who, room, NOW)

    def _commit(self) -> Step:
        who = self._random.choice((ANN, BEN))
        held = [*{claimed.run.id: claimed for claimed in self._claims[who][-6:]}.values()]
        wanted = [self._changes(claimed) for claimed in self._random.sample(held, min(len(held), 2))]
        return lambda store: store.commit(who, wanted, later(self._moment))

    def _changes(self, claimed: Any) -> Any:
        random, id = self._random, claimed.run.id
        what: dict[str, Any] = {}
        if random.random() < 0.6:
            cancel = random.choice((None, NOW))
            what["run"] = replaced(claimed.run, status=random.choice(list(RunStatus)), cancel_requested_at=cancel)
        if random.random() < 0.5:
            what["tasks"] = (task(random.choice(TASKS), random.choice((TaskStatus.SUCCESS, TaskStatus.PENDING))),)
            what["attempts"] = (attempt(id, random.choice(TASKS), status=AttemptStatus.SUCCESS),)
        if random.random() < 0.5:
            what["launches"] = tuple(
                launch_request(id, name, random.randrange(3), pool=random.choice((None, "api")))
                for name in random.sample(TASKS, 2)
            )
        if random.random() < 0.4:
            size, number, pool = random.randint(1, 4), self._moment, random.choice((None, "api"))
            group = group_requests(
                id, size, random.randint(1, 4), number=number, pool=pool, priority=random.randrange(3)
            )
            self._asked |= {request.attempt.key: request.attempt for request in group}
            what["launches"] = (*what.get("launches", ()), *group)
        members = [each for each in self._grouped if each.run == id]
        if members and random.random() < 0.5:
            ended = replaced(random.choice(members), status=AttemptStatus.SUCCESS)
            what["attempts"] = (*what.get("attempts", ()), ended)
        if self._commands and random.random() < 0.5:
            what["commands_done"] = (random.choice(self._commands),)
        return changes(claimed, release_ownership=random.random() < 0.2, **what)

    def _renew(self) -> Step:
        who = self._random.choice((ANN, BEN))
        return lambda store: store.renew(who)

    def _expire(self) -> Step:
        who = self._random.choice((ANN, BEN))
        return lambda store: store.expire([who])

    def _release(self) -> Step:
        who = self._random.choice((ANN, BEN))
        runs = self._random.choice((None, [self._some_run()]))
        return lambda store: store.release(who, runs)

    def _limits(self) -> Step:
        limits = self._random.choice(({}, {"*": 3}, {"pool:api": 1, "executor:process": 2}))
        return lambda store: store.set_limits(limits)

    def _sleep(self) -> Step:
        return lambda store: asyncio.sleep(0)

    def _some_run(self) -> Any:
        return self._random.choice(self._runs or ["nobody"])


async def everything(store: StateStore) -> dict[str, Any]:
    """All that can be read, without what only the store itself can interpret."""
    runs = (await store.list_runs(RunFilter(limit=1000))).runs
    return {
        "runs": runs,
        "tasks": [(await store.run_updates(run.id)).tasks for run in runs],
        "attempts": [await store.list_attempts(run.id) for run in runs],
        "owners": [await store.get_owner(run.id) for run in runs],
        "commands": [await store.pending_commands(run.id) for run in runs],
        "schedulers": await store.list_schedulers(),
        "workflows": await store.list_workflows(),
        "limits": [(use.name, use.slots, use.used, len(use.holders)) for use in await store.limit_use()],
    }


def comparable(answer: Any) -> Any:
    """The answer without what stores need not know: whether any run is left that waits for an owner."""
    return replaced(answer, nothing_waits=False) if isinstance(answer, Claim) else answer


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
async def test_any_history_gives_the_same_answers_from_every_store(seed: int, tmp_path: Path) -> None:
    left_out = {"sqlite-file", "postgres-behind-pgbouncer"} | ({"firestore"} if seed >= ON_FIRESTORE else set())
    kinds = [name for name in STORES if name not in left_out]
    worlds = {name: Stores(STORES[name], tmp_path) for name in kinds}
    handles = {name: world.open() for name, world in worlds.items()}
    history = History(seed)
    for handle in handles.values():
        for flow in (version("free", TASKS), version("flow", TASKS, id="flow-None")):
            await handle.save_version(flow, origin=None, now=NOW)
    for number in range(STEPS):
        name, step = history.next_step()
        answers = {kind: comparable(await step(handle)) for kind, handle in handles.items()}
        if name == "sleep":
            for world in worlds.values():
                world.clock.advance(35)
        first, *others = answers.values()
        assert all(answer == first for answer in others), (number, name, answers)
        history.learn(name, first)
    seen = [await everything(handle) for handle in handles.values()]
    for other in seen[1:]:
        assert other == seen[0]
    for world in worlds.values():
        await world.close()
