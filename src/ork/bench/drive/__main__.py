"""python -m ork.bench.drive KIND ARGUMENT…    prints one JSON object"""

from __future__ import annotations

import asyncio
import json
import sys

from ork.bench.drive.history import drive_history
from ork.bench.drive.memory import drive_attempts, drive_cancel, drive_machine
from ork.bench.drive.runs import drive_engine, drive_idle, drive_latency, drive_workflow


def main() -> None:
    match sys.argv[1:]:
        case "workflow", file:
            work = drive_workflow(file)
        case "preloaded", file:
            work = drive_workflow(file, is_preloaded=True)
        case "engine", shape, count:
            work = drive_engine(shape, int(count))
        case "latency", file, count:
            work = drive_latency(file, int(count))
        case "attempts", file, count:
            work = drive_attempts(file, int(count))
        case ("cancel",):
            work = drive_cancel()
        case "machine", count:
            work = drive_machine(int(count))
        case "history", filled, empty, *sizes:
            work = drive_history(filled, empty, [int(size) for size in sizes])
        case _, seconds:
            work = drive_idle(float(seconds))
    print(json.dumps(asyncio.run(work)))


if __name__ == "__main__":
    main()
