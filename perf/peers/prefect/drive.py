"""Prefect with its temporary server on SQLite: tasks in threads of the flow's process."""

import os
import sys
import time

WORK, COUNT, FOLDER = sys.argv[1], int(sys.argv[2]), sys.argv[3]
os.environ |= {
    "PREFECT_HOME": FOLDER,
    "PREFECT_LOGGING_LEVEL": "ERROR",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
}

from prefect import flow, task  # noqa: E402


@task
def light(_before=None):
    return 1


@flow
def chain(count):
    value = None
    for _ in range(count):
        value = light(value)
    return value


@flow
def fanout(count):
    return sum(future.result() for future in light.map(range(count)))


def main():
    work = chain if WORK == "chain" else fanout
    work(1)  # starts its server
    begin = time.perf_counter()
    work(COUNT)
    print("seconds", time.perf_counter() - begin)


if __name__ == "__main__":
    main()
