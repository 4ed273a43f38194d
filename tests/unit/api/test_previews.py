"""Previews of outputs: their kind, size and beginning, without reading all of a large one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ork.api.page_models import OutputPreview
from ork.api.routing import PREFIX
from ork.compile.content import make_version
from ork.model.access import Role
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.record import replaced
from ork.model.run import NewRun, Run, RunStatus
from ork.model.task import InlineOutput, Output, StoredOutput
from ork.model.workflow import CompiledWorkflow
from ork.state.records import RunChanges
from ork.status import previews
from tests.unit.api.conftest import ANN, NOW, Bench
from tests.unit.api.test_run_reads import BOTH, at, ended, spec, with_store

LARGE = 400_000


async def run_with(bench: Bench, *values: Any, large: bool = False) -> Run:
    """A run with a task for each output, and a fan-out of all of them."""
    tasks = tuple(replaced(spec(f"t{number}")) for number in range(len(values)))
    from ork.model.workflow import Const

    fan = replaced(spec("fan"), foreach=Const(list(range(len(values)))))
    version = make_version(CompiledWorkflow("outs", (*tasks, fan)), "/project", "outs.yaml")
    await bench.store.save_version(version, origin=None, now=NOW)
    (run,) = await bench.store.create_runs([NewRun(RunId("00000000000a"), "outs", version.id, {})], NOW)
    await bench.store.register(ANN, "identity", "scheduler", NOW)
    (claimed,) = (await bench.store.claim_runs(ANN, 10, NOW)).runs

    def output(key: TaskKey, value: Any) -> Output:
        text = json.dumps(value)
        if not large:
            return InlineOutput(text)
        reference = bench.objects.put_output(str(AttemptKey(run.id, key, 1)), text.encode())
        return StoredOutput(reference, len(text))

    keys = [TaskKey(f"t{number}") for number in range(len(values))]
    rows = [ended(key.name, None, 1, 2, output=output(key, value)) for key, value in zip(keys, values, strict=True)]
    rows.append(ended("fan", None, 1, 2, instances=len(values)))
    for number, value in enumerate(values):
        rows.append(ended("fan", number, 1, 2, output=output(TaskKey("fan", number), value)))
    row = replaced(claimed.run, status=RunStatus.SUCCESS, started_at=NOW, finished_at=at(3))
    await bench.store.commit(ANN, [RunChanges(run.id, claimed.epoch, row, tuple(rows), release_ownership=True)], NOW)
    return row


async def shown(client: Any, path: str, most: int = 3) -> dict[str, Any]:
    answer = await client.get(f"{PREFIX}/runs/@last/tasks/{path}/output?preview={most}")
    assert answer.status_code == 200, answer.text
    OutputPreview.model_validate_json(answer.content)
    found: dict[str, Any] = {name: value for name, value in answer.json().items() if value is not None}
    return found


@BOTH
async def test_small_outputs_are_shown_by_their_kind(bench: Bench, kind: str) -> None:
    table = [{"a": 1}, {"a": 2, "b": None}, {"c": 3}, {"d": 4}]
    async with with_store(bench, kind) as used, await used.client(Role.VIEWER) as client:
        await run_with(used, table, [1, 2.5], "words", {"x": "y" * 2000, "n": 1}, 7, [1, "a", True])
        found = await shown(client, "t0")
        assert found == {
            "kind": "table", "size": len(json.dumps(table)), "length": 4, "is_complete": False,
            "items": table[:3], "columns": ["a", "b", "c"],
        }  # fmt: skip
        assert (await shown(client, "t1"))["items"] == [1, 2.5]
        assert (await shown(client, "t1"))["kind"] == "numbers"
        assert (await shown(client, "t2"))["text"] == "words"
        assert (await shown(client, "t3"))["keys"] == [
            {"name": "x", "value": None, "is_shown": False}, {"name": "n", "value": 1, "is_shown": True},
        ]  # fmt: skip
        assert await shown(client, "t4") == {"kind": "other", "size": 1, "is_complete": True, "value": 7}
        assert (await shown(client, "t5"))["kind"] == "other"
        fan = await shown(client, "fan", 2)
        assert (fan["kind"], fan["is_complete"], fan["items"]) == ("other", False, [table, [1, 2.5]])
        assert (await shown(client, "fan/1"))["items"] == [1, 2.5]
        assert (await client.get(f"{PREFIX}/runs/@last/tasks/fan/output")).json()[2] == "words"
        assert (await client.get(f"{PREFIX}/runs/@last/tasks/nothing/output?preview=1")).status_code == 404
        assert (await client.get(f"{PREFIX}/runs/@last/tasks/t0/output?preview=0")).status_code == 422


async def test_only_the_beginning_of_a_large_output_is_read(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    many = LARGE // 4
    values = [
        list(range(many)),
        [{"n": n} for n in range(many)],
        "€\n" * many,
        {f"k{n}": n for n in range(many)},
        {"k": "v" * LARGE},
    ]
    await run_with(bench, *values, large=True)
    read: list[int] = []
    real = type(bench.objects).read

    def counted(objects: Any, key: str, start: int = 0, size: int | None = None) -> bytes:
        data = real(objects, key, start, size)
        read.append(len(data))
        return data

    monkeypatch.setattr(type(bench.objects), "read", counted)
    monkeypatch.setattr(type(bench.objects), "get", None)
    async with await bench.client(Role.VIEWER) as client:
        numbers = await shown(client, "t0", 5)
        assert (numbers["kind"], numbers["items"], numbers["size"]) == (
            "numbers",
            [0, 1, 2, 3, 4],
            len(json.dumps(values[0])),
        )
        assert "length" not in numbers
        assert (await shown(client, "t1", 2))["items"] == [{"n": 0}, {"n": 1}]
        assert (await shown(client, "t2"))["text"] == values[2][: previews.TEXT_SHOWN]  # type: ignore[index]
        assert [each["value"] for each in (await shown(client, "t3"))["keys"]] == [0, 1, 2]
        assert (await shown(client, "t4"))["keys"] == [{"name": "k", "value": None, "is_shown": False}]
        assert max(read) <= previews.READ_BYTES


def test_a_number_that_is_cut_is_not_shown() -> None:
    assert previews._beginning(b"[1, 23", False, 9).value == [1]
    assert previews._beginning(b'{"a": 1, "b": 23', False, 9).value == {"a": 1, "b": None}
    assert previews._members('{"a": 1, "b', 9) == ({"a": 1}, None)
    assert previews._members('{"a": 1, "b": tr', 9) == ({"a": 1, "b": None}, "b")
    assert previews._beginning(b'"abc\\u20', False, 9).value == "abc"
