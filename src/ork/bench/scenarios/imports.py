"""Tasks that import a large package, beside floors that have imported the same package before they begin."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ork.bench import workloads
from ork.bench.ground import Ground
from ork.bench.measure import ResultTarget, Work, result_of
from ork.bench.processes import lean_floor
from ork.bench.sampling import driver_sample, interleaved
from ork.bench.scale import Scale
from ork.errors import UsageError

FLOOR = "the same function and imports in {}, commits as in that scenario without imports, no engine"
FORKS = "forks from one process that has imported them, with the protocol's files"
REUSED = "a process for each processor, which has imported them"
_SHARE_OF_FANOUT = 4  # such a task takes longer than an empty one
# Each calls into the package, so that its threads, if it has any, are started.
TASKS = {
    "pandas": "import pandas\n\n\ndef main():\n    return int(pandas.Series([1, 2, 3]).sum())\n",
    "polars": "import polars\n\n\ndef main():\n    return polars.DataFrame({'a': [1, 2, 3]}).lazy().sum().collect().item()\n",
    "pyarrow": "import pyarrow.compute\n\n\ndef main():\n    return pyarrow.compute.sum(pyarrow.array([1, 2, 3])).as_py()\n",
    "requests": "import requests\n\n\ndef main():\n    return requests.Request('GET', 'http://localhost/').prepare().url\n",
    "sqlalchemy": "import sqlalchemy\n\n\ndef main():\n    return str(sqlalchemy.select(sqlalchemy.literal(1)))\n",
    "torch": "import torch\n\n\ndef main():\n    return int(torch.ones(3).sum())\n",
}
Prepare = Callable[[Path, int], Path]


def imports(package: str, scale: Scale, ground: Ground) -> list[dict[str, Any]]:
    """A chain, a fan-out and a fan-out of tasks that share processes. UsageError if the package is not installed."""
    if find_spec(package) is None:
        hint = f"install it into the environment of ork: pip install {package}"
        raise UsageError(f"this scenario needs {package}, which is not installed", hint=hint)
    count = scale.fanout // _SHARE_OF_FANOUT
    chain = Work(f"{package} chain", scale.chain, FLOOR.format(FORKS), (ResultTarget(2.5, at_most=True),))
    fanout = Work(f"{package} fanout", count, FLOOR.format(FORKS), (ResultTarget(0.4),), rate=True)
    rate = ResultTarget(1000, field="tasks_per_second")
    shared = Work(f"{package} shared", scale.shared, FLOOR.format(REUSED), (rate,), rate=True)
    return [
        _measured(chain, "chain", workloads.chain, TASKS[package], scale, ground),
        _measured(fanout, "fanout", workloads.python_fanout, TASKS[package], scale, ground),
        _measured(shared, "shared", workloads.shared_fanout, TASKS[package], scale, ground),
    ]


def _measured(work: Work, floor: str, prepare: Prepare, task: str, scale: Scale, ground: Ground) -> dict[str, Any]:
    file = ground.folder / f"{floor}.py"
    file.write_text(task)

    def measure(number: int) -> Any:
        place = workloads.importing(prepare(ground.folder / f"{floor}-{number}", work.tasks), task)
        with ground.fresh_store() as store:
            return driver_sample(place, store, "preloaded", str(place / "workflow.yaml"))

    return result_of(
        work, interleaved(scale.repeats, lambda: lean_floor(floor, work.tasks, ground.folder, file), measure)
    )


IMPORTS = {package: partial(imports, package) for package in TASKS}
