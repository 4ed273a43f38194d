"""Counts the work of the hot paths and compares it with the last release: `make perf`.

A count is the same on every machine, unlike a time. Figures that rose by more than a tenth are marked. This is a report for
people who change these paths: no test depends on it. Exit code 1 only if something could not be counted.

    python -m perf.counts                  compare with perf/counts.json
    python -m perf.counts --record 0.2.0   write perf/counts.json, when 0.2.0 is released
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from perf.calls import calls_per_task
from perf.counting_documents import calls_for_documents
from perf.counting_workers import calls_for_commands, calls_for_functions, calls_for_shared_calls
from perf.walk import walk

RECORD = Path(__file__).with_name("counts.json")
MARGIN = 1.1  # versions of Python count a little differently
FEW, MANY = 10, 40

Figures = dict[str, float]


def scheduler_calls(folder: Path) -> Figures:
    names = {"free": "independent tasks", "wide": "instances of one task", "deep": "tasks of a chain"}
    return {f"scheduler: calls per task, {name}": calls_per_task(shape, folder) for shape, name in names.items()}


def document_calls(_folder: Path) -> Figures:
    told, heard = calls_for_documents()
    return {"scheduler: calls to write a spec": told, "scheduler: calls to read a status": heard}


def worker_calls(folder: Path) -> Figures:
    kinds: dict[str, Callable[[int, Path], tuple[int, int]]] = {
        "function in its own process": calls_for_functions,
        "command": calls_for_commands,
        "function in a shared process": calls_for_shared_calls,
    }
    figures: Figures = {}
    for name, count in kinds.items():
        few, many = (count(number, folder / f"{name} {number}") for number in (FEW, MANY))
        python, interpreter = ((after - before) / (MANY - FEW) for before, after in zip(few, many, strict=True))
        figures[f"worker: calls of Python functions, {name}"] = python
        figures[f"worker: calls of built-in functions, {name}"] = interpreter
    return figures


def walk_figures(_folder: Path) -> Figures:
    command, workers = walk()
    return {
        "ork run examples/etl: files": len(command.files),
        "ork run examples/etl: pairs of functions across files": len(command.pairs),
        "workers of examples/etl: files": len(workers.files),
    }


SECTIONS = (scheduler_calls, document_calls, worker_calls, walk_figures)


def count() -> tuple[Figures, list[str]]:
    """All figures, and why a section could not be counted: code that moved away from under a counter is reported."""
    figures: Figures = {}
    problems = []
    with TemporaryDirectory(prefix="ork-perf-") as folder:
        for section in SECTIONS:
            try:
                figures |= section(Path(folder))
            except Exception as problem:
                problems.append(f"{section.__name__} cannot be counted: {problem!r}")
    return figures, problems


def report(figures: Figures, recorded: Figures, release: str) -> list[str]:
    width = max(map(len, figures), default=0)
    lines = [f"{'':<{width}}  {release:>8}  {'now':>8}"]
    for name, now in figures.items():
        was = recorded.get(name)
        mark = "" if was is None or now <= was * MARGIN else "  more"
        lines.append(f"{name:<{width}}  {'–' if was is None else f'{was:,.1f}':>8}  {now:>8,.1f}{mark}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description="Count the work of the hot paths and compare with the last release.")
    parser.add_argument("--record", metavar="RELEASE", help="write the figures as those of this release")
    release = parser.parse_args().record
    figures, problems = count()
    if release is not None and not problems:
        record = {
            "release": release,
            "python": platform.python_version(),
            "figures": {name: round(value, 1) for name, value in figures.items()},
        }
        RECORD.write_text(json.dumps(record, indent=2) + "\n")
    recorded = json.loads(RECORD.read_text())
    for line in [*report(figures, recorded["figures"], recorded["release"]), *problems]:
        print(line)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
