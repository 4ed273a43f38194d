"""Two results side by side: what became worse, by more than this machine's mood explains."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ork.errors import UsageError
from ork.model.record import Record

Result = dict[str, Any]

# How much worse each may be. A ratio has its floor's noise in it; counts and sizes have hardly any.
MARGINS = {"ratio": 1.25, "statements": 1.1, "kb_each": 1.25, "rss_mb": 1.2}
WORDS = {
    "ratio": "its ratio to the floor",
    "statements": "statements",
    "kb_each": "KB for each",
    "rss_mb": "memory in MB",
}


class Difference(Record):
    """One field of one measurement, then and now."""

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
    """Of what was measured both times, in the order of `after`."""
    earlier = {key_of(part): part for part in before}
    return [found for part in after if (old := earlier.get(key_of(part))) for found in differences_of(old, part)]


def key_of(part: Result) -> tuple[str, int | None, int]:
    """Numbers of different sizes say nothing about each other."""
    return part["scenario"], part.get("size"), part["tasks"]


def differences_of(old: Result, new: Result) -> Iterator[Difference]:
    for field, margin in MARGINS.items():
        was, now = old.get(field), new.get(field)
        if was and now is not None and (field != "ratio" or has_same_floor(old, new)):
            worse = is_worse(old, new, margin) if field == "ratio" else now > was * margin
            yield Difference(new["scenario"], new.get("size"), field, was, now, worse)


def has_same_floor(old: Result, new: Result) -> bool:
    """A distance to something else says nothing."""
    return bool((old.get("floor") or {}).get("what") == (new.get("floor") or {}).get("what"))


def is_worse(old: Result, new: Result, margin: float) -> bool:
    """Beyond the margin, and beyond what the repeats of either differ by among themselves."""
    if new.get("higher_is_better"):
        return bool(new["ratio"] * margin < old["ratio"] and best(new, max) < best(old, min))
    return bool(new["ratio"] > old["ratio"] * margin and best(new, min) > best(old, max))


def best(part: Result, choose: Any) -> float:
    return float(choose(part.get("ratio_range") or [part["ratio"]]))
