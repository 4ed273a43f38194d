"""A shim whose task cannot even be started."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NoReturn

from ork.objects.documents import Signer
from ork.objects.local import LocalObjects
from ork.worker.supervise.shim import Shim
from ork.worker.supervise.status import Ending

SPEC: dict[str, Any] = {
    "attempt": "r/t/0/1",
    "news": None,
    "kind": "command",
    "timeout": None,
    "stop_grace_seconds": 1,
    "heartbeat_seconds": 10,
    "fence_seconds": 45,
}


class Job:
    is_started = False

    def start(self, _log: object) -> Ending | int:
        raise OSError(24, "Too many open files")

    def clean(self) -> None: ...


def shim(root: Path) -> NoReturn:
    os.setsid()  # its group is its own: whatever it ends is not us
    Shim(LocalObjects(str(root)), SPEC, Signer("ab" * 32), None, Job()).run()  # type: ignore[arg-type]
    os._exit(0)


def test_a_task_whose_process_could_not_be_made_has_failed_and_its_shim_says_so(tmp_path: Path) -> None:
    (tmp_path / "runs" / "r").mkdir(parents=True)
    pid = os.fork()
    if pid == 0:
        shim(tmp_path)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    status = json.loads((tmp_path / "runs" / "r" / "t.0.1.status.json").read_bytes())
    assert (status["state"], status["failure"]["kind"]) == ("failed", "internal")
    assert "Too many open files" in status["failure"]["message"]
