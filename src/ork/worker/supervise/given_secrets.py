"""The secrets a worker was given: variables of its own environment, which the task does not get to see."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ork.model.masking import Mask

PREFIXES = ("ORK_SECRET_", "ORK_PARAM_")  # of secrets, and of sensitive params


def given_mask(environ: Mapping[str, str]) -> Mask | None:
    """What their values are masked with in all that is written about the attempt; None if there are none."""
    given = {name: value for name, value in environ.items() if name.startswith(PREFIXES)}
    if not given:
        return None
    from ork.model.masking import Mask, values_to_mask

    return Mask(values_to_mask(given)) or None
