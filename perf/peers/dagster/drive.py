"""Dagster with its multiprocess executor and a local instance: a new process for each op."""

import os
import sys
import time

if __name__ == "__main__":  # the processes of its ops import this file as well, and inherit what is said here
    os.environ |= {"DAGSTER_HOME": sys.argv[3], "PEER_COUNT": sys.argv[2], "DAGSTER_DISABLE_TELEMETRY": "1"}

from dagster import DagsterInstance, In, Nothing, execute_job, job, op, reconstructable


@op(name="first")
def first():
    return None


def light(name):
    @op(name=name, ins={"before": In(Nothing)})
    def body():
        return None

    return body


@job
def chain():
    before = None
    for number in range(int(os.environ["PEER_COUNT"])):
        before = light(f"t{number}")(before) if before is not None else first()


@job
def fanout():
    for number in range(int(os.environ["PEER_COUNT"])):
        first.alias(f"t{number}")()


def main():
    open(os.path.join(sys.argv[3], "dagster.yaml"), "w").close()
    instance = DagsterInstance.get()
    begin = time.perf_counter()
    result = execute_job(reconstructable(chain if sys.argv[1] == "chain" else fanout), instance=instance)
    print("seconds", time.perf_counter() - begin)
    assert result.success


if __name__ == "__main__":
    main()
