"""All error codes, with the explanations that `ork explain` prints. A code never changes its meaning."""

from __future__ import annotations

from ork.definition.codes.explanation import CodeExplanation
from ork.errors import NotFoundError


def all_codes() -> dict[str, CodeExplanation]:
    from ork.definition.codes import files, keys, locations, references, services, types

    return {**keys.CODES, **references.CODES, **types.CODES, **files.CODES, **locations.CODES, **services.CODES}


def explain(code: str) -> str:
    return find(code).text()


def find(code: str) -> CodeExplanation:
    """The explanation of a code, written as `ORK201`, `ork201` or `201`."""
    codes = all_codes()
    wanted = code.strip().upper()
    found = codes.get(wanted if wanted.startswith("ORK") else f"ORK{wanted}")
    if found is None:
        raise NotFoundError(f"there is no code {code!r}", hint=f"codes go from {min(codes)} to {max(codes)}")
    return found
