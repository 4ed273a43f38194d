"""The code of a run is reported as far as it can be known, and never keeps a run from being shown."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ork.errors import UnreadableError
from ork.model.ids import VersionId
from ork.model.record import replaced
from ork.model.run import Run
from ork.model.workflow import CompiledWorkflow, Version
from ork.source_code.read import CodeReader
from ork.state.memory import MemoryStore
from ork.status.code_report import CodeReport, code_report
from tests.conformance.state_samples import NOW, new_run


class DamagedStore(MemoryStore):
    async def get_version(self, version: VersionId) -> Version | None:
        raise UnreadableError("version v cannot be read")


def reported(version: Version, store: MemoryStore | None = None) -> CodeReport:
    async def work() -> CodeReport:
        used = store or MemoryStore()
        await used.save_version(version, origin=None, now=NOW)
        run: Run
        (run,) = await used.create_runs([new_run(version)], NOW)
        return await code_report(used, run.id)

    return asyncio.run(work())


def test_the_report_says_what_has_changed_and_otherwise_why_nobody_knows(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text("first")
    version = CodeReader().version(CompiledWorkflow("flow", ()), str(tmp_path))
    assert (reported(version).is_changed, reported(version).difference) == (False, None)
    (tmp_path / "tasks.py").write_text("second")
    found = reported(version)
    assert found.is_changed
    assert found.difference is not None
    assert found.difference["changed"] == ["tasks.py"]
    assert "was not recorded" in (reported(replaced(version, code=None)).note or "")
    assert "not on this machine" in (reported(replaced(version, root="/nowhere/at/all")).note or "")
    assert reported(replaced(version, root="image:/app", code=None)).is_changed is False
    damaged = reported(version, DamagedStore())
    assert (damaged.is_changed, damaged.note) == (None, "version v cannot be read")
