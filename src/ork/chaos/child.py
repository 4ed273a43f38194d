"""`python -m ork.chaos.child PARENT COMMAND…`: an `ork` command that is killed when its parent dies, however that happens."""

from __future__ import annotations

import runpy
import sys

from ork.system import system

if __name__ == "__main__":
    system.die_with_parent(int(sys.argv.pop(1)))
    runpy.run_module("ork", run_name="__main__", alter_sys=True)
