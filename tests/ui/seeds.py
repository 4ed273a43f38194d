"""Projects with a history, for pages to show: failures, retries, fan-outs, waiting approvals, and very large runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ork.bench.pages.large_runs import add_deep_run, add_history, add_wide_run

__all__ = ["add_deep_run", "add_history", "add_wide_run", "fill", "ork"]

TASKS = '''"""Plain functions of a shop's pipelines."""


class HTTPError(Exception):
    """What an API answers when it is unwell."""


def extract(day: str, region: str = "eu"):
    for page in range(12):
        print(f"INFO GET /v2/orders?day={day}&region={region}&page={page}")
    return {"rows": 4812, "parts": list(range(24))}


def load(item: int, broken: list):
    print(f"INFO GET /v2/part/{item}")
    if item in broken:
        print("ERROR 503 after 30.0s")
        raise HTTPError(f"503 Service Unavailable from api.example.com, part {item}")
    print(f"INFO loaded {item * 31 % 97} rows")
    return {"part": item, "rows": item * 31 % 97}


def publish(load: list):
    print("\\x1b[32mINFO\\x1b[0m published")
    return [{"part": each["part"], "rows": each["rows"], "share": each["rows"] / 97} for each in load]
'''
FLOWS = {
    "my_etl": """
name: my_etl
description: Loads the orders of a day
params:
  day: {type: date, default: 2026-11-17, description: which day to load}
  region: {type: '"eu" | "us" | "asia"', default: eu}
  limit: {type: int, default: 1000}
  dry_run: {type: bool, default: false}
  broken: {type: "list[int]", default: [], description: parts that the API does not deliver}
tasks:
  extract: {file: tasks.py, function: extract, inputs: {day: {ref: params.day}, region: {ref: params.region}}}
  load: {file: tasks.py, function: load, foreach: extract.parts, inputs: {broken: {ref: params.broken}}, concurrency: 8, pool: api}
  publish: {file: tasks.py, function: publish, depends_on: [load]}
  tidy: {command: [sh, -c, 'echo tidied up'], depends_on: [publish], run_if: all_done}
""",
    "billing": """
name: billing
tasks:
  invoices: {command: [sh, -c, 'echo 48 invoices; echo "{\\"invoices\\": 48}" > /dev/null']}
  publish: {command: [sh, -c, 'echo uploading; kill -9 $$'], depends_on: [invoices], retries: 1, retry_delay: 100ms}
""",
    "reports": """
name: reports
schedule: {cron: "0 2 * * *", timezone: Europe/Berlin, catchup: none}
tasks:
  collect: {command: [sh, -c, 'echo collecting']}
  send: {command: [sh, -c, 'echo sending'], depends_on: [collect]}
""",
    "release": """
name: release
tasks:
  build: {command: [sh, -c, 'echo built version 1.4']}
  approve: {approval: {message: 'Publish version 1.4?', timeout: 7d}, depends_on: [build]}
  publish: {command: [sh, -c, 'echo published'], depends_on: [approve]}
""",
    "nightly": """
name: nightly
tasks:
  wait: {command: [sh, -c, 'echo waiting for the file go; until [ -e go ]; do sleep 0.2; done'], pool: api}
  after: {command: 'true', depends_on: [wait]}
""",
    "hostile": """
name: hostile
description: "<img src=x onerror=globalThis.pwned=1> \\u202e"
params: {text: "<script>globalThis.pwned=1</script>"}
tasks:
  a:
    command: [sh, -c, 'printf "%b" "$0"; exit 3', {ref: params.text}]
""",
}
QUIET = ("customers", "inventory", "prices", "ratings", "search_index")


def write_project(folder: Path) -> None:
    (folder / "ork.yaml").write_text("pools: {api: 4}\n")
    (folder / "tasks.py").write_text(TASKS)
    for name, text in FLOWS.items():
        (folder / f"{name}.yaml").write_text(text)
    for name in QUIET:
        (folder / f"{name}.yaml").write_text(f"name: {name}\ntasks:\n  refresh: {{command: [sh, -c, 'echo done']}}\n")


def fill(folder: Path, environment: Mapping[str, str], *, is_hostile: bool = True) -> None:
    """Runs of every kind: successes, failures of one and of many instances, one that waits for a person. With `is_hostile`, also
    one whose texts are meant for a browser to run."""
    write_project(folder)
    flows = [name for name in FLOWS if is_hostile or name != "hostile"]
    ork(folder, environment, "deploy", *(f"{name}.yaml" for name in (*flows, *QUIET)))
    for name in QUIET:
        ork(folder, environment, "run", f"{name}.yaml")
    for broken in ([], [], [7], [], [3, 4, 11, 17]):
        ork(folder, environment, "run", "my_etl.yaml", "-p", f"broken={broken}", exits=(1,) if broken else (0,))
    ork(folder, environment, "run", "billing.yaml", exits=(1,))
    ork(folder, environment, "run", "reports.yaml")
    ork(folder, environment, "run", "release.yaml", exits=(5,))
    if is_hostile:
        ork(folder, environment, "run", "hostile.yaml", exits=(1,))


def ork(folder: Path, environment: Mapping[str, str], *args: str, exits: Sequence[int] = (0,)) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ork", *args], cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode in exits, f"{args}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout
