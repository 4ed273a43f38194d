"""Executors of a project's own: real attempts, real signals."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from ork.executors import processes
from tests.integration.workshop import Workshop, in_workshop

EXECUTORS = """
import asyncio, dataclasses, time
from pathlib import Path
from typing import TypedDict

import ork

@dataclasses.dataclass
class Shared:
    greeting: str = "hello"

class Greeter:
    @dataclasses.dataclass
    class TaskConfig:
        name: str
        times: int = 1

    def __init__(self, config: Shared):
        self.greeting = config.greeting

    def run(self, context, config, inputs):
        print("greeting", config.name)
        context.metrics.set("times", config.times)
        return {"text": f"{self.greeting} {config.name}" * config.times, "inputs": inputs, "task": context.task_name}

class Plain:
    def __init__(self, config):
        self.config = config
    async def run(self, context, config, inputs):
        await asyncio.sleep(0)
        return [self.config, config, inputs]

class Loose:
    class TaskConfig(TypedDict, total=False):
        a: int
    def __init__(self, config): ...
    def run(self, context, config, inputs):
        return config

class Broken:
    def __init__(self, config):
        raise RuntimeError("cannot be made")

class Idle:
    def __init__(self, config): ...

class Stubborn:
    def __init__(self, config): ...
    def run(self, context, config, inputs):
        Path("running").write_text("yes")
        time.sleep(600)
    def stop(self, context):
        print("stopping", context.task_name)
        Path("stopped").write_text("yes")

class AsyncStubborn(Stubborn):
    async def run(self, context, config, inputs):
        Path("running").write_text("yes")
        await asyncio.sleep(600)
    async def stop(self, context):
        await asyncio.sleep(0)
        Path("stopped").write_text("yes")

class Submitter(ork.TaskExecutor):
    def run(self, context, config, inputs):
        return ork.defer(ork.call_job("executors:poll", {"job": 1}))
"""


def custom(name: str, config: Any = None, task_config: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "kind": "custom",
        "executor": "mine",
        "target": f"executors:{name}",
        "config": config or {"value": None},
        "task_config": task_config or {"value": None},
        **more,
    }


def value(**fields: Any) -> dict[str, Any]:
    return {"value": fields}


@in_workshop
async def test_the_class_is_made_with_its_config_and_runs_the_task_with_its_own(shop: Workshop) -> None:
    shop.write("executors.py", EXECUTORS)
    attempt = shop.attempt()
    spec = custom("Greeter", value(greeting="ahoy"), value(name="Ada", times=2), inputs={"n": {"value": 1}})
    status = await shop.run(attempt, **spec)
    assert status["state"] == "success", status["failure"]
    assert '"ahoy Adaahoy Ada"' in status["output"]["inline"]
    assert '"inputs":{"n":1},"task":"work"' in status["output"]["inline"]
    assert status["metrics"] == {"times": 2}
    assert shop.log(attempt) == b"greeting Ada\n"


@in_workshop
async def test_configs_without_types_come_as_written_and_upstream_outputs_stand_in_for_inputs(shop: Workshop) -> None:
    shop.write("executors.py", EXECUTORS)
    bound = {"map": {"a": {"list": [{"value": 1}, {"secret": "ORK_SECRET_X"}]}, "b": {"value": None}}}
    order = shop.order(shop.attempt(), **custom("Plain", None, bound, upstream={"before": {"value": 5}}))
    status = await shop.run_order(order, secrets=(("ORK_SECRET_X", "s"),))
    assert status["output"]["inline"] == '[null,{"a":[1,"s"],"b":null},{"before":5}]'


@pytest.mark.parametrize(
    ("spec", "kind", "message"),
    [
        (custom("Greeter", None, value(nam="Ada")), "input", "`config` has no key `nam`; known: name, times"),
        (custom("Greeter"), "input", "`config` needs `name`"),
        (custom("Greeter", None, value(name=3)), "input", "`config`.name: expected text, got 3"),
        (
            custom("Greeter", value(greting="x"), value(name="a")),
            "input",
            "of executor `mine` in ork.yaml: Shared has no",
        ),
        (custom("Loose", None, value(b=1)), "input", "`config` has no key `b`; known: a"),
        (custom("Idle"), "start", "`executors:Idle` has no method `run`"),
        (custom("Greter"), "start", "did you mean `Greeter`?"),
        (custom("Broken"), "exception", "RuntimeError: cannot be made"),
        ({**custom("X"), "target": "nowhere:X"}, "start", "there is no module `nowhere`"),
    ],
)
def test_what_does_not_fit_is_told_before_anything_runs(
    tmp_path: Any, spec: dict[str, Any], kind: str, message: str
) -> None:
    @in_workshop
    async def attempt(shop: Workshop) -> None:
        shop.write("executors.py", EXECUTORS)
        status = await shop.run(**spec)
        assert (status["state"], status["failure"]["kind"]) == ("failed", kind), status["failure"]
        assert message in status["failure"]["message"]

    attempt(tmp_path)


@pytest.mark.parametrize("name", ["Stubborn", "AsyncStubborn"])
def test_a_cancelled_attempt_calls_the_executors_own_stop(tmp_path: Any, name: str) -> None:
    @in_workshop
    async def cancel(shop: Workshop) -> None:
        shop.write("executors.py", EXECUTORS)
        attempt = shop.attempt()
        assert await shop.start(attempt, **custom(name)) == []
        await shop.until_file(shop.root / "running")
        gate = shop.gates.of(attempt)
        assert gate is not None
        assert processes.send_signal(gate["pid"], gate["start_time"], signal.SIGTERM)
        status = await shop.ended(attempt)
        assert status["state"] == "stopped"
        assert (shop.root / "stopped").read_text() == "yes"

    cancel(tmp_path)


@in_workshop
async def test_an_executor_may_hand_over_to_jobs(shop: Workshop) -> None:
    shop.write("executors.py", EXECUTORS)
    attempt = shop.attempt()
    assert await shop.start(attempt, **custom("Submitter")) == []
    await shop.vanished(attempt)
    status = shop.status(attempt)
    assert status is not None
    assert (status["state"], status["finished_at"], status["output"]) == ("deferred", None, None)
    assert status["jobs"] == [{"call": "executors:poll", "args": {"job": 1}, "every": 10.0}]
