"""Projects to measure: workflows as YAML, as a user would write them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

LIGHT_TASK = "def main():\n    return 1\n"
SHARED_AT_ONCE = 100  # for each processor, as docs/performance.md advises


def chain(folder: Path, count: int) -> Path:
    """A chain of Python tasks."""
    after_first = (f"{python_task(n)}    depends_on: [t{n - 1}]\n" for n in range(1, count))
    return project(folder, "chain", [python_task(0), *after_first])


def python_fanout(folder: Path, count: int) -> Path:
    return project(folder, "fanout", (python_task(n) for n in range(count)))


def shared_fanout(folder: Path, count: int) -> Path:
    """The same in reused workers, with the recommended number of concurrent tasks."""
    place = project(folder, "fanout", (f"{python_task(n)}    isolation: shared\n" for n in range(count)))
    (place / "ork.yaml").write_text(f"durability: normal\nmax_workers: {SHARED_AT_ONCE * (os.cpu_count() or 1)}\n")
    return place


def command_fanout(folder: Path, count: int) -> Path:
    return project(folder, "fanout", (f'  t{n}:\n    command: ["true"]\n' for n in range(count)))


def containers(folder: Path, count: int, image: str) -> Path:
    """A chain of containers."""
    task = '  t{n}:\n    image: {image}\n    command: ["true"]\n'
    rows = [task.format(n=n, image=image) + (f"    depends_on: [t{n - 1}]\n" if n else "") for n in range(count)]
    place = project(folder, "containers", rows)
    (place / "workers.yaml").write_text("default: {where: docker, network: none}\n")
    return place


def instances(folder: Path, count: int) -> Path:
    """A workflow `live` of one Python task with many instances, in reused workers."""
    return project(folder, "live", [f"{python_task(0)}    parallel: {count}\n    isolation: shared\n"])


def sleepers(folder: Path, count: int) -> Path:
    """Commands that only wait, all of them concurrently."""
    place = project(folder, "sleepers", [f'  t:\n    command: ["sleep", "600"]\n    parallel: {count}\n'])
    (place / "ork.yaml").write_text(f"durability: normal\nmax_workers: {count}\n")
    return place


def hello(folder: Path) -> Path:
    return project(folder, "hello", [python_task(0)])


def importing(place: Path, source: str) -> Path:
    """The same project with another task."""
    (place / "light.py").write_text(source)
    return place


def python_task(n: int) -> str:
    return f"  t{n}:\n    file: light.py\n"


def project(folder: Path, name: str, tasks: Iterable[str]) -> Path:
    """The folder, with a workflow.yaml and the one Python file its tasks use."""
    folder.mkdir()
    (folder / "ork.yaml").write_text("durability: normal\n")  # makes this folder the project root
    (folder / "light.py").write_text(LIGHT_TASK)
    (folder / "workflow.yaml").write_text(f"name: {name}\ntasks:\n{''.join(tasks)}")
    return folder
