"""Airflow with all its services on SQLite and the LocalExecutor: a new process for each task."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

WORK, COUNT, FOLDER = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])

DAG = """
from airflow.sdk import dag, task

@task
def light():
    return 1

@dag(schedule=None, max_active_tasks={count})
def bench():
    tasks = [light.override(task_id="t%d" % n)() for n in range({count})]
    if {is_chain}:
        for before, after in zip(tasks, tasks[1:]):
            before >> after

bench()
"""
AIRFLOW = Path(sys.executable).with_name("airflow")
ENVIRONMENT = os.environ | {
    "PATH": f"{AIRFLOW.parent}:{os.environ['PATH']}",  # its services look for each other there
    "AIRFLOW_HOME": str(FOLDER),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
    "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
    # On a busy machine its scheduler may hear from the executor that a task succeeded before it can read so from SQLite, and
    # then takes the task for failed ("state changed externally").
    "AIRFLOW__CORE__DEFAULT_TASK_RETRIES": "5",
    "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "0",
    "AIRFLOW__API__PORT": "18080",
    "AIRFLOW__API__BASE_URL": "http://localhost:18080",
    "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": "http://localhost:18080/execution/",
}


def airflow(*words):
    """What the command said; nothing if it failed."""
    done = subprocess.run([AIRFLOW, *words], env=ENVIRONMENT, capture_output=True, text=True)
    return "" if done.returncode else done.stdout


def until(is_so, seconds):
    give_up_at = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < give_up_at, "it takes too long"
        time.sleep(1)


def last_words():
    """Why a run failed stands among what its services said, and in the logs of its tasks."""
    logs = [FOLDER / "services.log", *sorted(FOLDER.glob("logs/dag_id=bench/**/*.log"))]
    said = [line for log in logs for line in log.read_text(errors="replace").splitlines()]
    return "\n".join(line for line in said if "error" in line.lower() or "exception" in line.lower())[-2000:]


def runs():
    lines = airflow("dags", "list-runs", "bench", "--output", "json").splitlines()
    return next((json.loads(line) for line in lines if line.startswith("[{")), [])


def main():
    (FOLDER / "dags").mkdir()
    (FOLDER / "dags" / "bench.py").write_text(DAG.format(count=COUNT, is_chain=WORK == "chain"))
    with open(FOLDER / "services.log", "w") as log:
        services = subprocess.Popen(
            [AIRFLOW, "standalone"], env=ENVIRONMENT, stdout=log, stderr=log, start_new_session=True
        )
    try:
        until(lambda: airflow("dags", "trigger", "bench"), 300)  # refused until the file has been read
        until(lambda: any(run["state"] in ("success", "failed") for run in runs()), 1800)
        [run] = runs()
        assert run["state"] == "success", last_words()
        print("seconds", seconds_between(run["start_date"], run["end_date"]))
    finally:
        os.killpg(services.pid, signal.SIGTERM)
        services.wait()


def seconds_between(begin, end):
    from datetime import datetime

    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()


if __name__ == "__main__":
    main()
