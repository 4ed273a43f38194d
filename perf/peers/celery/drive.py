"""Celery on Redis: reused worker processes (prefork, two of them); a chain and a group."""

import os
import subprocess
import sys
import time

from celery import chain, group
from work import app, light

WORK, COUNT = sys.argv[1], int(sys.argv[2])


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    command = [sys.executable, "-m", "celery", "-A", "work", "worker", "-c", "2", "-l", "ERROR"]
    worker = subprocess.Popen(command, cwd=folder)
    try:
        while not app.control.ping(timeout=1):
            time.sleep(0.1)
        light.delay().get(timeout=30)
        begin = time.perf_counter()
        if WORK == "chain":
            chain(*(light.s() for _ in range(COUNT))).apply_async().get(timeout=600)
        else:
            assert sum(group(light.s() for _ in range(COUNT)).apply_async().get(timeout=600)) == COUNT
        print("seconds", time.perf_counter() - begin)
    finally:
        worker.terminate()
        worker.wait()


main()
