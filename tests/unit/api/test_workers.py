"""Worker configs through the API."""

from __future__ import annotations

import httpx

from ork.api.app import create_app
from ork.api.routing import PREFIX
from ork.definition.project import Project
from ork.definition.workers_file import load_workers
from ork.model.access import Role
from ork.model.record import replaced
from tests.unit.api.conftest import Bench


async def test_worker_configs_are_told_without_the_values_of_their_variables(bench: Bench) -> None:
    configs, _ = load_workers(b"a: {where: docker, memory: 64Mi, env: {PASSWORD: hunter2}}\nb: {where: local}")
    app = create_app(replaced(bench.api, project=Project(workers=configs)))
    transport = httpx.ASGITransport(app)
    headers = {"Authorization": f"Bearer {await bench.token(Role.VIEWER)}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
        first = await client.get(f"{PREFIX}/workers", params={"limit": 1})
        second = await client.get(f"{PREFIX}/workers", params={"cursor": first.json()["cursor"]})
    (row,) = first.json()["workers"]
    assert (row["name"], row["where"], row["memory"], row["env"]) == ("a", "docker", 64 << 20, ["PASSWORD"])
    assert "hunter2" not in first.text
    assert ([each["name"] for each in second.json()["workers"]], second.json()["cursor"]) == (["b"], None)
