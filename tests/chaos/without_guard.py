"""An `ork` that starts every adopted attempt a second time: `without_guard.py gate|open COMMAND…`.

With "gate" the start gate alone keeps user code from running twice; with "open" its workers ignore the gate.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from ork.executors import local, local_worker
from ork.scheduler import observe

WORKER = """\
import os, sys
sys.path[0] = os.environ["JUDGED_SOURCE"]
from ork.worker import main
win = main.win_gate
main.win_gate = lambda *words: win(*words) or True
os._exit(main.perform(sys.argv[1], sys.argv[2]))
"""


def main() -> None:
    mode, folder = sys.argv[1], os.environ["JUDGED_FOLDER"]
    look = observe.Observer.look

    async def look_and_start_again(self: Any, now: Any) -> observe.Seen:
        adopted = [w for w in self._watched if w.launches == 0 and not w.closing]
        seen = await look(self, now)
        for watched in adopted:
            watched.launches = 1
            seen.launch.append(watched.attempt)
        return seen

    def start_in_any_case(self: Any, order: Any, news: Any) -> None:
        with open(os.path.join(folder, "launches"), "a") as file:
            file.write(f"{order.attempt.key}\n")
        self._listen_for(order.attempt.key, news)
        log = self._documents.open_log(str(order.attempt.key))
        local_worker.spawn_worker(self._pythons.of(order), self._documents.url, order, log.fileno(), os.environ)
        log.close()

    observe.Observer.look = look_and_start_again  # type: ignore[method-assign]
    local.LocalExecutor._start_one = start_in_any_case  # type: ignore[assignment, method-assign]
    if mode != "gate":
        worker = os.path.join(folder, "worker.py")
        with open(worker, "w") as file:
            file.write(WORKER)
        assert os.path.exists(local_worker.BOOTSTRAP)
        local_worker.BOOTSTRAP = worker
    from ork.cli.main import main as ork

    ork(sys.argv[2:])


main()
