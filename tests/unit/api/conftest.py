"""The whole API in one process: a real store on disk, real objects, the guard in front, and requests as a client's."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from ork.api.app import all_routes, create_app
from ork.api.context import Api
from ork.api.events import Hub
from ork.api.guard import RequestGuard
from ork.api.routing import RouteTable
from ork.api.tokens import make_token
from ork.compile.content import make_version
from ork.compile.pricing import Pricing
from ork.definition.prices_file import shipped_prices
from ork.definition.project import Project
from ork.model.access import Role
from ork.model.ids import AttemptKey, RunId, SchedulerId, TaskKey
from ork.model.record import replaced
from ork.model.run import NewRun, Run, RunStatus
from ork.model.task import Attempt, AttemptStatus, InlineOutput, Task, TaskStatus
from ork.model.workflow import Command, CompiledWorkflow, Const, Param, TaskSpec, Version
from ork.objects.local import LocalObjects
from ork.scheduler.service import TickReport
from ork.state.records import RunChanges
from ork.state.sqlite import SqliteStore

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SECRET = "a secret of the hook"
ANN = SchedulerId("ann")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Tests may be coroutines: each gets an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


ROUTES = RouteTable(all_routes())


async def check_response(response: httpx.Response) -> None:
    """A response has exactly the fields that the OpenAPI document names."""
    route = ROUTES.match(response.request.method, response.request.url.path).route
    model = route.options.get("response_model") if route is not None and not route.is_stream else None
    if model is not None and response.is_success:
        await response.aread()
        model.model_validate_json(response.content)


def workflow(name: str = "flow", **options: Any) -> Version:
    tasks = (
        TaskSpec("extract", "process", Command((Const("true"),))),
        TaskSpec("load", "process", Command((Const("true"),)), depends_on=("extract",)),
    )
    params = (Param("n", "int", required=False, default=1), Param("event", required=False))
    return make_version(CompiledWorkflow(name, tasks, params=params, **options), "/project", "flow.yaml")


@dataclass
class Bench:
    """One API and the tokens to it."""

    folder: Path
    store: SqliteStore
    objects: LocalObjects
    api: Api
    app: RequestGuard
    texts: dict[Role, str] = field(default_factory=dict)
    woken: list[str] = field(default_factory=list)

    async def token(self, role: Role) -> str:
        if role not in self.texts:
            text, token = make_token(f"the {role}", role, NOW)
            await self.store.add_token(token)
            self.texts[role] = text
        return self.texts[role]

    async def client(self, role: Role | None = Role.ADMIN, **headers: str) -> httpx.AsyncClient:
        if role is not None:
            headers["Authorization"] = f"Bearer {await self.token(role)}"
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        hooks = {"response": [check_response]}
        return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers, event_hooks=hooks)

    async def deploy(self, name: str = "flow", **options: Any) -> Version:
        version = workflow(name, **options)
        await self.store.save_version(version, origin=None, now=NOW)
        return version

    async def run(self, id: str = "00000000000a") -> Run:
        version = await self.deploy()
        (run,) = await self.store.create_runs([NewRun(RunId(id), "flow", version.id, {"n": 1})], NOW)
        return run


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    store = SqliteStore(tmp_path / "ork.db")
    objects = LocalObjects(str(tmp_path / "objects"))
    woken: list[str] = []

    async def tick() -> TickReport:
        woken.append("tick")
        return TickReport(1, 0, 0, None)

    def secret(name: str) -> str | None:
        return SECRET if name == "ORK_HOOK_FLOW" else None

    pricing = Pricing(Project(), shipped_prices(), "sqlite:", "file:")
    api = Api(store, objects, Hub(store), tick, root=str(tmp_path), secret=secret, pricing=lambda: pricing)
    yield Bench(tmp_path, store, objects, api, create_app(api), woken=woken)
    asyncio.run(store.close())


async def worked_on(bench: Bench, status: RunStatus = RunStatus.RUNNING) -> Run:
    """A run whose first task has succeeded in its second attempt."""
    run = await bench.run()
    await bench.store.register(ANN, "identity", "scheduler", NOW)
    (claimed,) = (await bench.store.claim_runs(ANN, 10, NOW)).runs
    extract, load = TaskKey("extract"), TaskKey("load")
    output = InlineOutput('{"rows": 12}')
    tasks = (
        Task(extract, TaskStatus.SUCCESS, "process", 2, started_at=NOW, finished_at=NOW, output=output),
        Task(load, TaskStatus.PENDING, "process"),
    )
    attempts = tuple(
        Attempt(AttemptKey(run.id, extract, number), ended, "process", "name", "hash", NOW, finished_at=NOW)
        for number, ended in ((1, AttemptStatus.FAILED), (2, AttemptStatus.SUCCESS))
    )
    row = replaced(claimed.run, status=status, started_at=NOW, finished_at=NOW if status.is_final else None)
    change = RunChanges(run.id, claimed.epoch, row, tasks, attempts, release_ownership=status.is_final)
    await bench.store.commit(ANN, [change], NOW)
    return row
