"""DBOS on Postgres (SQLite if there is none): steps of a durable workflow; for the fan-out, workflows started at once. All in one process."""

import os
import sys
import time

from dbos import DBOS

WORK, COUNT, FOLDER = sys.argv[1], int(sys.argv[2]), sys.argv[3]

STORE = os.environ.get("PEER_POSTGRES", f"sqlite:///{FOLDER}/dbos.sqlite")

DBOS(config={"name": "bench", "system_database_url": STORE, "log_level": "ERROR"})


@DBOS.step()
def light_step() -> int:
    return 1


@DBOS.workflow()
def chain(count: int) -> int:
    return sum(light_step() for _ in range(count))


@DBOS.workflow()
def leaf() -> int:
    return light_step()


def fanout(count: int) -> int:
    return sum(handle.get_result() for handle in [DBOS.start_workflow(leaf) for _ in range(count)])


def main():
    DBOS.launch()
    (chain if WORK == "chain" else fanout)(1)
    begin = time.perf_counter()
    assert (chain if WORK == "chain" else fanout)(COUNT) == COUNT
    print("seconds", time.perf_counter() - begin, flush=True)
    os._exit(0)  # its threads would be waited for


if __name__ == "__main__":
    main()
