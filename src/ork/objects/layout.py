"""Where an attempt's documents are. Nothing else knows these keys.

runs/<run>/<task>.<index or 0>.<attempt>/{spec,gate,status,output,stop}.json and `log` beside them. One folder for an
attempt rather than three: making folders is a good part of what a small task costs.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ork.model.ids import AttemptKey, RunId


def run_folder(run: RunId) -> str:
    return f"runs/{run}"


def attempt_folder(key: AttemptKey) -> str:
    return f"runs/{key.run}/{key.task.name}.{key.task.index or 0}.{key.number}"


def shared_key(run: RunId, task: str, round: int) -> str:
    """The output of a task, put down once for the many that are given it."""
    return f"runs/{run}/{task}.shared-{round}.json"


def folder_of(key: str) -> str:
    """The attempt's folder, from the key of any document in it."""
    return key.rpartition("/")[0]


def parts_of(key: str) -> tuple[str, str, str, str, str] | None:
    """Run, task, index, attempt and name of an attempt's document; None for a key of anything else."""
    home, _, rest = key.partition("/")
    run, _, rest = rest.partition("/")
    folder, _, name = rest.partition("/")
    task, *numbers = folder.rsplit(".", 2)
    if home != "runs" or not name or len(numbers) != 2 or not all(number.isdecimal() for number in numbers):
        return None
    return run, task, numbers[0], numbers[1], name


def spec_key(folder: str) -> str:
    return folder + "/spec.json"


def gate_key(folder: str) -> str:
    return folder + "/gate.json"


def status_key(folder: str) -> str:
    return folder + "/status.json"


def output_key(folder: str) -> str:
    return folder + "/output.json"


def stop_key(folder: str) -> str:
    return folder + "/stop.json"


def log_key(folder: str) -> str:
    return folder + "/log"
