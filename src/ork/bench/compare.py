"""Compares two results: what became worse by more than the noise of the machine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ork.errors import UsageError
from ork.model.record import Record

Result = dict[str, Any]

# Allowed margins. A ratio includes the noise of its floor; counts and sizes have almost none.
MARGINS = {"ratio": 1.25, "statements": 1.1, "kb_each": 1.25, "rss_mb": 1.2}
WORDS = {
    "ratio": "its ratio to the floor",
    "statements": "statements",
    "kb_each": "KB for each",
    "rss_mb": "memory in MB",
}


class Difference(Record):
    """One field of one measurement, before and after."""

    scenario: str
    size: int | None
    field: str
    was: float
    now: float
    is_worse: bool

    @property
    def sentence(self) -> str:
        where = self.scenario if self.size is None else f"{self.scenario} at {self.size:,}"
        return f"{where}: {WORDS[self.field]} was {self.was:,g}, is {self.now:,g}"


def read_parts(file: Path) -> list[Result]:
    """The measurements of an earlier `--json`."""
    try:
        parts: list[Result] = json.loads(file.read_text())["parts"]
        assert all(part["scenario"] for part in parts)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, AssertionError) as error:
        raise UsageError(f"{file} is not a result of ours", hint="made by `ork bench … --json > FILE`") from error
    return parts


def differences(before: Sequence[Result], after: Sequence[Result]) -> list[Difference]:
    """Changes of the measurements that both results have, in the order of `after`."""
    earlier = {key_of(part): part for part in before}
    return [found for part in after if (old := earlier.get(key_of(part))) for found in differences_of(old, part)]


def key_of(part: Result) -> tuple[str, int | None, int]:
    """True if both measurements have the same size and can be compared."""
    return part["scenario"], part.get("size"), part["tasks"]


def differences_of(old: Result, new: Result) -> Iterator[Difference]:
    for field, margin in MARGINS.items():
        was, now = old.get(field), new.get(field)
        if was and now is not None and (field != "ratio" or has_same_floor(old, new)):
            worse = is_worse(old, new, margin) if field == "ratio" else now > was * margin
            yield Difference(new["scenario"], new.get("size"), field, was, now, worse)


def has_same_floor(old: Result, new: Result) -> bool:
    """False for differences to another value, which cannot be compared."""
    return bool((old.get("floor") or {}).get("what") == (new.get("floor") or {}).get("what"))


def is_worse(old: Result, new: Result, margin: float) -> bool:
    """True if the change exceeds the margin and the spread of the repeats of both results."""
    if new.get("higher_is_better"):
        return bool(new["ratio"] * margin < old["ratio"] and best(new, max) < best(old, min))
    return bool(new["ratio"] > old["ratio"] * margin and best(new, min) > best(old, max))


def best(part: Result, choose: Any) -> float:
    return float(choose(part.get("ratio_range") or [part["ratio"]]))
