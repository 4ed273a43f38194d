"""A workflow in Python, found beside the one in YAML."""

from ork import Workflow

cleanup = Workflow("cleanup")


@cleanup.task
def old_files() -> list[str]:
    return ["a.tmp", "b.tmp"]


@cleanup.task
def removed(old_files: list[str]) -> int:
    return len(old_files)
