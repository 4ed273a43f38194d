"""What the frozen installation runs. Every start of user code is one line of `ledger.txt`; `release*` files end what holds."""

import os
import signal
import time
from pathlib import Path

import ork

ROOT = Path(__file__).parent


def note(ctx, what="start"):
    index = "" if ctx.parallel_index is None else f"[{ctx.parallel_index}]"
    line = f"{what} {ctx.run_id} {ctx.task_name}{index} {ctx.attempt}\n"
    descriptor = os.open(ROOT / "ledger.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(descriptor, line.encode())
    os.close(descriptor)


def wait_for(name):
    while not (ROOT / name).exists():
        time.sleep(0.05)


def quick(ctx):
    note(ctx)
    print("quick says hello")
    return {"rows": 12, "attempt": ctx.attempt}


def add(ctx, first, second=1):
    note(ctx)
    return first + second


def fail(ctx):
    note(ctx)
    raise ValueError("no such table: orders")


def fail_once(ctx):
    note(ctx)
    if ctx.attempt == 1:
        raise ValueError("not yet")
    return ctx.attempt


def hold(ctx):
    note(ctx)
    wait_for("release")
    return "held"


def hold_until_late(ctx):
    note(ctx)
    wait_for("release-late")
    return "late"


def stubborn(ctx):
    note(ctx)
    if not (ROOT / "release").exists():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    wait_for("release")


def hold_odd(ctx, item):
    note(ctx)
    if item % 2:
        wait_for("release")
    return item * 10


def big(ctx):
    note(ctx)
    return ["x" * 100] * 1000


def count(ctx, big):
    note(ctx)
    wait_for("release")
    return len(big)


def submit(ctx):
    note(ctx)
    return ork.defer(ork.call_job("tasks:is_released", {}, every=0.2))


def is_released():
    return "released" if (ROOT / "release").exists() else None
