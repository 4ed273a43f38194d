"""Startup, liveness and readiness probes of a container."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2

from tests.kubernetes.container_runs import ContainerRun
from tests.kubernetes.engine import Engine, EngineError

Document = dict[str, Any]


async def succeeds(engine: Engine, http: httpx2.AsyncClient, run: ContainerRun, probe: Document, address: str) -> bool:
    try:
        async with asyncio.timeout(probe.get("timeoutSeconds", 1)):
            if "exec" in probe:
                return (await engine.execute(run.id, probe["exec"]["command"]))[0] == 0
            if "tcpSocket" in probe:
                _, writer = await asyncio.open_connection(address, _port(run, probe["tcpSocket"]["port"]))
                writer.close()
                return True
            return await _answers(http, run, probe["httpGet"], address)
    except (TimeoutError, OSError, httpx2.HTTPError, EngineError):
        return False


async def comes_up(engine: Engine, http: httpx2.AsyncClient, run: ContainerRun, probe: Document, address: str) -> bool:
    """Whether a startup probe succeeds before it has failed too often."""
    for _ in range(probe.get("failureThreshold", 3)):
        if await succeeds(engine, http, run, probe, address):
            return True
        await asyncio.sleep(probe.get("periodSeconds", 10))
    return False


async def until(
    engine: Engine, http: httpx2.AsyncClient, run: ContainerRun, probe: Document, address: str, wanted: bool
) -> None:
    """Returns once the probe has succeeded (or failed) as often in a row as its threshold says."""
    needed = probe.get("successThreshold" if wanted else "failureThreshold", 1 if wanted else 3)
    in_a_row = 0
    while True:
        in_a_row = in_a_row + 1 if await succeeds(engine, http, run, probe, address) is wanted else 0
        if in_a_row >= needed:
            return
        await asyncio.sleep(probe.get("periodSeconds", 10))


async def _answers(http: httpx2.AsyncClient, run: ContainerRun, asked: Document, address: str) -> bool:
    url = f"{asked.get('scheme', 'HTTP').lower()}://{asked.get('host', address)}:{_port(run, asked['port'])}"
    headers = {each["name"]: each["value"] for each in asked.get("httpHeaders") or []}
    answer = await http.get(url + asked.get("path", "/"), headers=headers)
    return 200 <= answer.status_code < 400


def _port(run: ContainerRun, port: int | str) -> int:
    if isinstance(port, int):
        return port
    return next(int(each["containerPort"]) for each in run.spec.get("ports") or [] if each.get("name") == port)
