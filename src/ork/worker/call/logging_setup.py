"""How a task's `logging` begins."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LoggingSetUp:
    """When the task imports `logging`, INFO and above go to the log unless the task sets up something else."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> Any:
        if name != "logging":
            return None
        sys.meta_path.remove(self)
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_set_up(module: Any) -> None:
                load(module)
                # The handler of last resort, not a root handler: `basicConfig` in the task must still work.
                module.lastResort.setLevel(module.INFO)
                module.lastResort.setFormatter(module.Formatter("%(levelname)s %(name)s: %(message)s"))
                module.root.setLevel(module.INFO)

            spec.loader.exec_module = load_and_set_up  # type: ignore[method-assign]
        return spec
