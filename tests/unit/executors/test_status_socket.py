"""The folders of news sockets: made for one process, and taken away after it, even if it was killed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from ork.executors.status_socket import StatusSocket

OWNER = """
import sys, time
from ork.executors.status_socket import StatusSocket
news = StatusSocket(sys.argv[1])
print(news.address, flush=True)
time.sleep(600)
"""


def start_owner(place: Path) -> tuple[subprocess.Popen[str], Path]:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(place)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    return owner, Path(owner.stdout.readline().strip()).parent


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_uses_stays() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="t") as folder:  # short: it is part of an address
        place = Path(folder)
        dead, left_behind = start_owner(place)
        living, in_use = start_owner(place)
        try:
            dead.kill()
            dead.wait()
            for name in ("ork-1a2b3c4d", "ork-notes", "other"):
                (place / name).mkdir()
            assert left_behind.parent == in_use.parent == place
            assert left_behind.exists()
            news = StatusSocket(str(place))
            assert news.address is not None
            news.close()
            assert {entry.name for entry in place.iterdir()} == {in_use.name, "ork-1a2b3c4d", "ork-notes", "other"}
        finally:
            for owner in (dead, living):
                owner.kill()
                owner.communicate()
