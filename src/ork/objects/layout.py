"""Where an attempt's documents are. Nothing else knows these keys.

runs/<run>/<task>.<index or 0>.<attempt>.{spec,gate,status,end,output,stop}.json and `.log` beside them; `end` in buckets only. No folder for an
attempt: making one costs more than all its documents. `.value-<n>` are values that are not JSON: a file in a folder; elsewhere
objects of PART_BYTES each below that key, whose names are the offsets of their first bytes.
"""

from __future__ import annotations

from ork.errors import ObjectsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ork.model.ids import AttemptKey

RUNS = "runs"
PART_BYTES = 16 << 20  # of a value; readers compute keys from it, so it can never change
VALUES = "values"  # in a folder: a second name for each value, by its content
TEMPORARY, OWN = ".tmp-", ".ork-"  # names of files that a store keeps for itself begin with one of these
IDENTITY_KEY = "identity.json"  # which object store this is: see `ork.objects.opening`
VALUE = ".value-"
_DOCUMENTS = ("spec.json", "gate.json", "status.json")
_FILES = (
    "output.json",
    "log",
    "end.json",
    "stop.json",
)  # every worker looks for a stop now and then, and hardly ever is there one


def checked_key(key: str) -> str:
    """The key, if it is one that `ork.objects.store.ObjectStore` allows; else an ObjectsError."""
    if "\0" in key or any(part in ("", ".", "..") or part.startswith((TEMPORARY, OWN)) for part in key.split("/")):
        raise ObjectsError(f"not a key: {key[:200]!r}")
    return key


def run_folder(run: str) -> str:
    return f"{RUNS}/{run}"


def attempt_stem(key: AttemptKey) -> str:
    """The common prefix of the keys of its documents."""
    return f"{RUNS}/{key.run}/{key.task.name}.{key.task.index or 0}.{key.number}"


def shared_key(run: str, task: str, round: int) -> str:
    """The key of a task's output that is stored once for many attempts."""
    return f"{RUNS}/{run}/{task}.shared-{round}.json"


def stem(attempt: str) -> str:
    """The same, from the attempt's name, `str(AttemptKey)`."""
    run, task, index, number = attempt.split("/")
    return f"{RUNS}/{run}/{task}.{index}.{number}"


def attempt_of(key: str) -> str | None:
    """The name of the attempt that a document belongs to; None for a key of anything else."""
    parts = parts_of(key)
    return None if parts is None else "/".join(parts[:4])


def stem_of(key: str) -> str:
    """The attempt's, from the key of any of its documents."""
    whole, found, name = key.rpartition(VALUE)
    if found and is_value_name(name):
        return whole
    for name in (*_DOCUMENTS, *_FILES):
        if key.endswith("." + name):
            return key[: -len(name) - 1]
    return key


def run_of(key: str) -> str:
    """The run that an object below its folder belongs to."""
    return key.split("/", 2)[1]


def parts_of(key: str) -> tuple[str, str, str, str, str] | None:
    """Run, task, index, attempt and name of an attempt's document; None for a key of anything else."""
    stem = stem_of(key)
    home, _, rest = stem.partition("/")
    run, _, attempt = rest.partition("/")
    task, *numbers = attempt.rsplit(".", 2)
    if home != RUNS or stem == key or len(numbers) != 2 or not all(number.isdecimal() for number in numbers):
        return None
    return run, task, numbers[0], numbers[1], key[len(stem) + 1 :]


def document_parts(key: str) -> tuple[str, str, str] | None:
    """Run, attempt and kind of a spec, gate or status; None for other keys."""
    home, _, rest = key.partition("/")
    run, _, name = rest.partition("/")
    if home != RUNS or "/" in name:
        return None
    for kind in _DOCUMENTS:
        if name.endswith("." + kind):
            return run, name[: -len(kind) - 1], kind
    return None


def spec_key(stem: str) -> str:
    return stem + ".spec.json"


def gate_key(stem: str) -> str:
    return stem + ".gate.json"


def status_key(stem: str) -> str:
    return stem + ".status.json"


def end_key(stem: str) -> str:
    """The last status, in a store where it has a key of its own."""
    return stem + ".end.json"


def output_key(stem: str) -> str:
    return stem + ".output.json"


def value_key(stem: str, name: str) -> str:
    """Of a value that is not JSON. Names are digits, with hyphens between and words behind: `0`, `0-preview`, `0-12`."""
    if not is_value_name(name):
        raise ObjectsError(f"not the name of a value: {name[:100]!r}")
    return stem + VALUE + name


def is_value_name(name: str) -> bool:
    first, _, rest = name.partition("-")
    return first.isdecimal() and len(name) <= 20 and (rest == "preview" or not rest or rest.isdecimal())


def value_name(key: str) -> str | None:
    """The name of the value that has this key; None if it is the key of anything else."""
    _, found, name = key.rpartition(VALUE)
    return name if found and is_value_name(name) and parts_of(key) is not None else None


def value_root(key: str) -> str:
    """The key of the value that a preview or the file of a folder belongs to; of a value its own."""
    whole, found, name = key.rpartition(VALUE)
    return whole + found + name.partition("-")[0]


def part_key(key: str, start: int) -> str:
    """The key of a part of a value, in a store without files."""
    return f"{key}/{start:015d}"


def stop_key(stem: str) -> str:
    return stem + ".stop.json"


def log_key(stem: str) -> str:
    return stem + ".log"
