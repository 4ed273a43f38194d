"""Merges a pod template of the user below what Ork sets. Pure."""

from __future__ import annotations

from typing import Any


def merged(below: Any, above: Any) -> Any:
    """`above` wins. Maps are merged; so are lists whose entries have a `name` or a `mountPath`, entry by entry. Other lists of
    maps, such as tolerations, are joined; lists of scalars, such as commands, are replaced."""
    if isinstance(below, dict) and isinstance(above, dict):
        both = {**below, **above}
        return {key: merged(below[key], above[key]) if key in below and key in above else both[key] for key in both}
    if isinstance(below, list) and isinstance(above, list) and all(isinstance(each, dict) for each in (*below, *above)):
        return _merged_lists(below, above)
    return above


def _merged_lists(below: list[dict[str, Any]], above: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ours come first: the order of init containers is the order in which they run."""
    theirs = {_identity(each): each for each in below if _identity(each) is not None}
    made = [merged(theirs.pop(_identity(each), {}), each) for each in above]
    rest = [each for each in below if _identity(each) is None and each not in above]
    return [*made, *theirs.values(), *rest]


def _identity(entry: dict[str, Any]) -> str | None:
    """What an entry of a list is known by. A volume may be mounted twice, so mounts are known by their path."""
    found = entry.get("mountPath", entry.get("name"))
    return None if found is None else str(found)
