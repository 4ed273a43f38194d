"""Local tasks beside an object store that takes its time."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ork.app.installation import open_installation
from ork.bench.drive.runs import read_version, timed_run
from ork.compile.content import make_version
from ork.model.record import replaced
from ork.objects.local import LocalObjects
from ork.settings import load_settings

DELAY_SECONDS = 0.03
MOST_SECONDS = 2.0
TASKS = 200
FLOW = f"""
name: wide
tasks:
  light:
    file: light.py
    parallel: {TASKS}
"""


class SlowObjects(LocalObjects):
    """Each operation takes as long as one of a bucket, and none may hold up the event loop."""

    answers_at_once = False

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.operations = 0
        self.on_the_loop: list[str] = []
        self._loop_thread = threading.current_thread()

    def put(self, key: str, data: bytes) -> None:
        self._wait("put", key)
        super().put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self._wait("put_if_absent", key)
        return super().put_if_absent(key, data)

    def get(self, key: str, *, limit: int | None = None) -> bytes | None:
        self._wait("get", key)
        return super().get(key, limit=limit)

    def read(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        self._wait("read", key)
        return super().read(key, start, size)

    def size(self, key: str) -> int | None:
        self._wait("size", key)
        return super().size(key)

    def _wait(self, verb: str, key: str) -> None:
        self.operations += 1
        if threading.current_thread() is self._loop_thread:
            self.on_the_loop.append(f"{verb} {key}")
        time.sleep(DELAY_SECONDS)


async def run_wide(folder: Path) -> tuple[dict[str, Any], SlowObjects]:
    installation = await open_installation(load_settings())
    installation.objects = slow = SlowObjects(str(folder / "objects"))
    version = read_version(str(folder / "wide.yaml"))
    first = replaced(version.workflow.tasks[0], parallel=None)
    alone = make_version(replaced(version.workflow, name="first", tasks=(first,)), version.root, "wide.yaml")
    return await timed_run(installation, await installation.scheduler("run"), version, alone), slow


@pytest.mark.slow
def test_a_slow_store_holds_up_no_local_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, the specs alone would take six seconds. Tried three times: other tests may run beside it."""
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "light.py").write_text("def main():\n    return 1\n")
        (folder / "wide.yaml").write_text(FLOW)
        (folder / "ork.yaml").write_text("objects: file:objects\n")
        monkeypatch.chdir(folder)
        result, slow = asyncio.run(run_wide(folder))
        assert slow.operations >= TASKS
        assert slow.on_the_loop == []
        if result["seconds"] < MOST_SECONDS:
            return
    raise AssertionError(f"{TASKS} tasks took {result['seconds']:.1f} s")
