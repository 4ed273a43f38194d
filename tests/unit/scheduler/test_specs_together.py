"""Specs of one launch are put together. One that cannot be put stops nobody else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ork.errors import ObjectsError
from tests.unit.core.flows import spec, workflow

from .bench_top import BenchTop


def test_one_run_whose_documents_cannot_be_written_stops_no_other(monkeypatch: Any) -> None:
    top = BenchTop(workflow(spec("a"), spec("b")))
    bad, good = top.create(), top.create()

    def put_specs(specs: Sequence[tuple[str, bytes]]) -> list[int]:
        if any(attempt.startswith(f"{bad}/") for attempt, _ in specs):
            raise ObjectsError("the folder belongs to somebody else")
        return [0] * len(specs)

    monkeypatch.setattr(top.objects, "put_specs", put_specs, raising=False)
    top.step(3)
    assert {order.attempt.run for order in top.executor.started} == {good}
    assert [order.attempt.key.task.name for order in top.executor.started] == ["a", "b"]
