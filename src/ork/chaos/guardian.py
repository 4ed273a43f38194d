"""`python -m ork.chaos.guardian FOLDER`: outlives a killed `ork chaos`, ends every process of its sandbox, and removes the folder.

Standard input is a pipe from `ork chaos`. The guardian ends when it reads a byte there: the sandbox was left in order. If the pipe
is closed without one, `ork chaos` is dead, and processes that it had suspended at that moment would stay for ever.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from ork.executors.processes import ProcessEntry, kill_family, tagged_processes

MARK = "TMPDIR"


def temporary_of(folder: Path) -> Path:
    """The sandbox's folder for temporary files. Its path is the mark of all processes of the sandbox."""
    return folder / "tmp"


def members(folder: Path) -> list[ProcessEntry]:
    """The living processes of the sandbox."""
    mine = str(temporary_of(folder))
    return [process for process in tagged_processes(MARK) if process.attempt == mine]


class Guardian:
    """The guardian of a sandbox, as `ork chaos` sees it."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ork.chaos.guardian", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """The sandbox is in order: the guardian ends and does nothing."""
        self._process.communicate(b".")


def main(folder: Path) -> None:
    if sys.stdin.buffer.read(1):
        return
    kill_family(lambda: members(folder))
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
