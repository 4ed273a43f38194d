"""Common parts of specs are serialised once, and the specs are the same as without that."""

from __future__ import annotations

from typing import Any

import pytest

from ork.model.record import replaced
from ork.model.workflow import CompiledWorkflow, Const, Environment, PythonCall, TaskSpec
from ork.objects import layout
from ork.objects.documents import open_signed, read_sent
from ork.scheduler import specs
from tests.unit.scheduler.bench_top import BenchTop

CALL = TaskSpec("a", "process", PythonCall("light.py", None))
TASKS = (
    CALL,
    replaced(CALL, name="b"),
    replaced(CALL, name="slow", timeout=30.0),
    replaced(CALL, name="other", action=PythonCall(None, "package.module", "work")),
    replaced(CALL, name="built", environment=Environment(path="env")),
    replaced(CALL, name="given", inputs=(("x", Const(1)),)),
    replaced(CALL, name="set", env=(("X", Const("1")),)),
    replaced(CALL, name="typed", input_types=(("x", "int"),)),
    replaced(CALL, name="returns", output_type="int"),
    replaced(CALL, name="wide", parallel=2),
    replaced(CALL, name="again"),
)


def specs_of(*tasks: TaskSpec) -> list[dict[str, Any]]:
    """As their workers read them."""
    bench = BenchTop(CompiledWorkflow("flow", tasks))
    bench.create()
    bench.step(3)
    found = []
    for order in bench.executor.started:
        data = bench.objects.get(layout.spec_key(layout.attempt_stem(order.attempt.key)))
        assert data is not None
        said = open_signed(data, order.attempt.token_hash)
        said.pop("own", None)
        sent = {name: value for name, value in read_sent(order.spec).items() if name not in ("own", "signature")}
        assert sent == said
        found.append({**said, "run_id": None, "attempt": None})
    return found


def test_each_attempt_is_told_what_it_would_be_told_if_it_were_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    together = specs_of(*TASKS)
    monkeypatch.setattr(specs, "has_shared_text", lambda *_: False)
    assert together == specs_of(*TASKS)
    assert [spec["task"] for spec in together] == [*(task.name for task in TASKS[:-1]), "wide", "again"]


def test_kinds_are_forgotten_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specs, "MAX_KINDS", 2)
    files = [f"{number}.py" for number in (1, 2, 3, 1)]
    tasks = [replaced(CALL, name=f"t{n}", action=PythonCall(file, None)) for n, file in enumerate(files)]
    assert [spec["file"] for spec in specs_of(*tasks)] == files
