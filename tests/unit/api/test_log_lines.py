"""Routes that index and search logs."""

from __future__ import annotations

import pytest

from ork.api.routes import logs
from ork.api.routing import PREFIX
from ork.model.access import Role
from ork.model.ids import AttemptKey, TaskKey
from ork.objects.layout import attempt_stem, log_key
from tests.unit.api.conftest import Bench, worked_on


async def test_a_log_is_searched_alone_and_with_all_others(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    run = await worked_on(bench)
    for number, text in ((1, b"one\n503\n"), (2, b"fine\n503 503\n503\n")):
        bench.objects.put(log_key(attempt_stem(AttemptKey(run.id, TaskKey("extract"), number))), text)
    log = f"{PREFIX}/runs/{run.id}/tasks/extract/0/attempts/2/log"
    async with await bench.client(Role.VIEWER) as client:
        lines = (await client.get(f"{log}/lines?every=100")).json()
        assert lines == {"offsets": [0], "lines": 3, "size": 17, "every": 100, "is_complete": True}
        found = (await client.get(f"{log}/search?q=503&limit=1")).json()
        assert found["hits"] == [{"line": 2, "offset": 5, "text": "503 503"}]
        assert found["total"] == 2
        whole = (await client.get(f"{PREFIX}/runs/{run.id}/logs/search?q=503")).json()
        assert [(each["task"], each["attempt"], each["total"]) for each in whole["logs"]] == [
            ("extract", 1, 1), ("extract", 2, 2),
        ]  # fmt: skip
        assert (whole["searched"], whole["total"], whole["cursor"]) == (2, 3, None)
        assert (await client.get(f"{PREFIX}/runs/{run.id}/logs/search?q=503&task=load")).json()["logs"] == []
        monkeypatch.setattr(logs, "MOST_LOGS", 1)
        first = (await client.get(f"{PREFIX}/runs/{run.id}/logs/search?q=503")).json()
        assert (len(first["logs"]), first["cursor"]) == (1, "extract/1")
        rest = await client.get(f"{PREFIX}/runs/{run.id}/logs/search?q=503&cursor={first['cursor']}")
        assert [each["attempt"] for each in rest.json()["logs"]] == [2]
        for path in (f"{log}/search", f"{log}/search?q=", f"{log}/lines?every=1"):
            assert (await client.get(path)).status_code == 422
        assert (await client.get(log.replace("attempts/2", "attempts/7") + "/lines")).status_code == 404
