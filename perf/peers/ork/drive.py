"""Ork on SQLite: a process for each task, from its fork server; or, `shared`, processes that are used again."""

import json
import subprocess
import sys
from pathlib import Path

from ork.bench import workloads
from ork.bench.processes import compile_bytecode

WORK, COUNT, FOLDER, VARIANT = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]

compile_bytecode()
prepare = workloads.chain if WORK == "chain" else workloads.python_fanout
place = prepare(FOLDER / "project", COUNT)
if VARIANT == "shared":
    (place / "ork.yaml").write_text("durability: normal\nisolation: shared\nmax_workers: 200\n")
command = [sys.executable, "-m", "ork.bench.drive", "workflow", str(place / "workflow.yaml")]
done = subprocess.run(command, cwd=place, check=True, stdout=subprocess.PIPE)
print("seconds", json.loads(done.stdout)["seconds"])
