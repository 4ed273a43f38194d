"""Ork on SQLite: a process for each task, from its fork server."""

import json
import subprocess
import sys
from pathlib import Path

from ork.bench import workloads
from ork.bench.processes import compile_bytecode

WORK, COUNT, FOLDER = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])

compile_bytecode()
prepare = workloads.chain if WORK == "chain" else workloads.python_fanout
place = prepare(FOLDER / "project", COUNT)
command = [sys.executable, "-m", "ork.bench.drive", "workflow", str(place / "workflow.yaml")]
done = subprocess.run(command, cwd=place, check=True, stdout=subprocess.PIPE)
print("seconds", json.loads(done.stdout)["seconds"])
