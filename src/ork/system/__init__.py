"""The operating system: the one place that knows what only Linux has.

`system` is the module `linux`, or `portable` on macOS and others. Both have the same functions; `tests/unit/system` compares them.
`portable` does with processes, sessions, `ps` and threads what Linux has system calls and `/proc` for. Three features are Linux's
alone, and `system` says so: pooled workers, tasks as another user, limits of memory and processors.

ORK_SYSTEM=portable chooses `portable` on Linux, for tests: see `forced`.
"""

from __future__ import annotations

import os
import sys

VARIABLE = "ORK_SYSTEM"
is_forced = sys.platform == "linux" and os.environ.get(VARIABLE) == "portable"

TYPE_CHECKING = False
if TYPE_CHECKING or (sys.platform == "linux" and not is_forced):
    from ork.system import linux as system
else:
    if is_forced:
        from ork.system.forced import hide_linux

        hide_linux()
    from ork.system import portable as system

__all__ = ["inherited_variables", "is_forced", "system"]


def inherited_variables() -> dict[str, str]:
    """The variables that a worker must get to choose as this process did."""
    return {VARIABLE: "portable"} if is_forced else {}
