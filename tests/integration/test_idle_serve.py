"""`ork serve` on Postgres with nothing due costs next to nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.chaos.judge import eventually
from tests.postgres import Server

SCHEDULES = 50
SECONDS = 20
TICKS_AT_MOST = SECONDS * os.sysconf("SC_CLK_TCK") // 100  # one percent of a processor
MEGABYTES_AT_MOST = 80
FLOW = 'name: flow{0}\nschedule: {{cron: "0 0 1 1 *"}}\ntasks:\n  a: {{command: echo 1}}\n'


def cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def megabytes(pid: int) -> float:
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


@pytest.mark.slow
def test_with_fifty_schedules_and_nothing_due_it_runs_no_statement_and_hardly_wakes(
    server: Server, database: str, tmp_path: Path, plain_environment: dict[str, str]
) -> None:
    for number in range(SCHEDULES):
        (tmp_path / f"flow{number}.yaml").write_text(FLOW.format(number))
    options = {"cwd": tmp_path, "env": {**plain_environment, "ORK_STORE": server.url(database)}}
    files = [f"flow{number}.yaml" for number in range(SCHEDULES)]
    subprocess.run([sys.executable, "-m", "ork", "deploy", *files], check=True, capture_output=True, **options)
    server.log_statements(database)
    serving = subprocess.Popen([sys.executable, "-m", "ork", "serve", "--port", "0"], stdout=subprocess.PIPE, **options)
    try:
        assert serving.stdout is not None
        assert b"ready" in serving.stdout.readline()
        eventually(lambda: any("LISTEN" in line for line in server.statements(database)))
        time.sleep(3)  # it has looked around
        statements, ticks = len(server.statements(database)), cpu_ticks(serving.pid)
        time.sleep(SECONDS)
        ran, ticked = server.statements(database)[statements:], cpu_ticks(serving.pid) - ticks
        print(f"{len(ran)} statements, {ticked} ticks in {SECONDS} s, {megabytes(serving.pid):.0f} MB")
        assert ran == []
        assert ticked <= TICKS_AT_MOST
        assert megabytes(serving.pid) <= MEGABYTES_AT_MOST
    finally:
        serving.kill()
        serving.wait()
