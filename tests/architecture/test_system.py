"""What only Linux has is used in `ork.system.linux`, and in the parts that only Linux has."""

from __future__ import annotations

import re
from pathlib import Path

ONLY_LINUX = re.compile(
    r"\bprctl\b|/proc\b|pidfd|memfd_create|SOCK_SEQPACKET|SOCK_CLOEXEC|SOCK_NONBLOCK|CLOCK_BOOTTIME|sched_[gs]etaffinity"
    r"|prlimit|\bfdatasync|setresuid|getresuid|\bwaitid|FIONREAD|/sys/fs|\bepoll|inotify|signalfd|timerfd|eventfd|setns"
)
# Parts that `system` switches off elsewhere, each with what does it.
PARTS = {
    "HAS_WORKER_POOL": (
        "worker/pool/", "executors/fork_server.py", "executors/worker_handle.py", "worker/call/task_process.py",
        "worker/call/packages.py", "worker/system/processes.py", "worker/supervise/log.py", "worker/supervise/dbt_server.py",
    ),
    "HAS_TASK_USERS": ("worker/supervise/task_user.py", "worker/supervise/left_files.py", "app/executors.py"),
    "HAS_LIMITS": ("worker/supervise/limits.py",),
    "measuring": ("bench/",),
    "refused elsewhere": ("chaos/", "cli/commands/chaos.py"),
}  # fmt: skip
OWN = ("system/linux.py", "system/forced.py")


def test_only_the_door_and_linux_only_parts_use_linux(tree: Path) -> None:
    package = tree / "src/ork"
    allowed = (*OWN, *(each for parts in PARTS.values() for each in parts))
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if any(ONLY_LINUX.search(line) for line in code_of(path))
    }
    assert sorted(file for file in found if not file.startswith(allowed)) == []


def code_of(path: Path) -> list[str]:
    """The lines that are neither comments nor sentences."""
    text = re.sub(r'"""(?s:.*?)"""', "", path.read_text())
    return [re.sub(r"(^|\s)#.*", "", line) for line in text.splitlines()]


def test_each_part_is_switched_off_where_it_is_missing(tree: Path) -> None:
    text = "".join(path.read_text() for path in (tree / "src/ork").rglob("*.py") if path.parent.name != "system")
    assert {name for name in PARTS if name.startswith("HAS_")} <= set(re.findall(r"system\.(HAS_\w+)", text))
