"""The attempts of a launch group as a short text, for a variable of the unit that starts them: `7f3k/each:0-999.1,1004.2`.

Attempts of a group belong to one task of one run. Instances that follow each other and have the same attempt number are one range.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def members_text(attempts: Sequence[str]) -> str:
    """The text for attempts, given by name in the order of their position in the unit."""
    run, task, *_ = attempts[0].split("/")
    ranges: list[list[int]] = []  # first instance, last instance, attempt number
    for name in attempts:
        index, number = map(int, name.split("/")[2:])
        if ranges and ranges[-1][1] + 1 == index and ranges[-1][2] == number:
            ranges[-1][1] = index
        else:
            ranges.append([index, index, number])
    parts = [f"{first}.{number}" if first == last else f"{first}-{last}.{number}" for first, last, number in ranges]
    return f"{run}/{task}:{','.join(parts)}"


def members_of(text: str) -> list[str]:
    """The attempts, by name. ValueError if the text is not one of `members_text`."""
    task, _, parts = text.partition(":")
    found = []
    for part in parts.split(","):
        instances, _, number = part.partition(".")
        first, _, last = instances.partition("-")
        found += [f"{task}/{index}/{int(number)}" for index in range(int(first), int(last or first) + 1)]
    return found
