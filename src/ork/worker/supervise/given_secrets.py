"""The secrets of an attempt: variables in the worker's environment that are not passed to the task."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ork.model.masking import Mask

PREFIXES = ("ORK_SECRET_", "ORK_PARAM_")  # of secrets, and of sensitive params


def given_mask(environ: Mapping[str, str]) -> Mask | None:
    """A mask for their values in everything that is written about the attempt; None if there are none."""
    given = {name: value for name, value in environ.items() if name.startswith(PREFIXES)}
    if not given:
        return None
    from ork.model.masking import Mask, values_to_mask

    return Mask(values_to_mask(given)) or None
