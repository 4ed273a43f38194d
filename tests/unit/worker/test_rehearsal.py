"""A task that is rehearsed is performed like any other, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys

SCRIPT = """
import json, os, sys
from ork.worker import invoke, loading
from ork.worker.rehearsal import rehearse

class Unmarked:
    memory, room = None, 64
    def write(self, attempt): pass
    def padded(self, attempt): return attempt.ljust(self.room, bytes(1))

def state():
    modules = sorted(name for name in sys.modules if not name.startswith("encodings"))
    return [dict(os.environ), os.getcwd(), modules, sys.path, os.listdir("/proc/self/fd"), invoke._has_packages]

invoke.use_streams()
before = state()
replies = [reply.decode() for reply in rehearse(Unmarked())]
print(json.dumps({"replies": replies, "is_as_before": state() == before, "ready": loading._ready}))
"""


def test_a_rehearsal_succeeds_and_leaves_the_process_as_it_was() -> None:
    environ = {**os.environ, "ORK_ATTEMPT_ID": "----"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environ, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    plain, *others = told["replies"]
    assert json.loads(plain)["output"] == {"inline": "1"}
    assert others == [plain, plain]
    assert told["is_as_before"]
    assert told["ready"] is None
    assert done.stderr == ""
