"""Measures containers that do nothing, one after the other: what Ork adds to the time of the container engine."""

from __future__ import annotations

import asyncio
import os
from time import perf_counter
from typing import Any

from ork.bench import workloads
from ork.bench.ground import Ground
from ork.bench.measure import ResultTarget, Sample, Work, judged, result_of
from ork.bench.sampling import driver_sample, interleaved
from ork.bench.scale import Scale
from ork.errors import OrkError
from ork.executors.docker.address import engine_address
from ork.executors.docker.engine import BYTE_EXACT_LOG, Engine
from ork.settings import load_settings

IMAGE = "busybox"
FLOOR = "the same containers made, started, waited for and their logs read by the engine's client alone"
_SHARE_OF_CHAIN = 4  # a container takes longer than a process


def containers(scale: Scale, ground: Ground) -> list[dict[str, Any]]:
    settings = load_settings(folder=str(ground.folder))
    engine = Engine(engine_address(settings.docker_host, settings.docker_certificates))
    work = Work("containers", max(2, scale.chain // _SHARE_OF_CHAIN), FLOOR)
    asyncio.run(have_image(engine))

    def measure(number: int) -> Any:
        place = workloads.containers(ground.folder / f"containers-{number}", work.tasks, IMAGE)
        with ground.fresh_store() as store:
            return driver_sample(place, store, "workflow", str(place / "workflow.yaml"))

    samples = interleaved(scale.repeats, lambda: floor_seconds(engine, work.tasks), measure)
    return [with_own_time(result_of(work, samples), samples, work.tasks)]


def with_own_time(result: dict[str, Any], samples: list[Sample], tasks: int) -> dict[str, Any]:
    """The time that Ork adds to each container, in milliseconds."""
    added = sorted((one.seconds - one.floor_seconds) / tasks for one in samples)
    result["own_ms"] = round(added[len(added) // 2] * 1000, 1)
    return result | judged((ResultTarget(200, at_most=True, field="own_ms"),), result)


def floor_seconds(engine: Engine, count: int) -> float:
    async def whole() -> float:
        names = [f"ork-bench-{os.urandom(6).hex()}" for _ in range(count)]
        begin = perf_counter()
        try:
            for name in names:
                await run_bare(engine, name)
            return perf_counter() - begin
        finally:
            for name in names:
                await engine.remove(name, force=True)

    return asyncio.run(whole())


async def run_bare(engine: Engine, name: str) -> None:
    host = {"NetworkMode": "none", "LogConfig": BYTE_EXACT_LOG}
    made = await engine.create(name, {"Image": IMAGE, "Cmd": ["true"], "HostConfig": host})
    await engine.start(made.id)
    if await engine.wait(made.id) != 0:
        raise OrkError(f"`true` failed in a container of {IMAGE}")
    async for _ in engine.logs(made.id, follow=True):
        pass


async def have_image(engine: Engine) -> None:
    if await engine.image(IMAGE) is None:
        await engine.pull(IMAGE)
