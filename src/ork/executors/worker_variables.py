"""Variables by which a platform tells a worker its attempt, or its launch group. Pure."""

from __future__ import annotations

from ork.executors.executor import GroupOrder
from ork.objects.group_members import members_text

ATTEMPT_VARIABLE = "ORK_ATTEMPT_ID"
OBJECTS_VARIABLE = "ORK_OBJECTS"
TOKEN_VARIABLE = "ORK_TOKEN"
GROUP_VARIABLE, MEMBERS_VARIABLE, KEY_VARIABLE = "ORK_GROUP", "ORK_ATTEMPTS", "ORK_GROUP_KEY"


def attempt_variables(attempt: str, objects_url: str, token: str) -> dict[str, str]:
    return {OBJECTS_VARIABLE: objects_url, ATTEMPT_VARIABLE: attempt, TOKEN_VARIABLE: token}


def group_variables(group: GroupOrder, objects_url: str) -> dict[str, str]:
    """Of the unit that starts a group: each worker in it finds its attempt, and makes its token, from them."""
    attempts = members_text([str(order.attempt.key) for order in group.orders])
    return {
        OBJECTS_VARIABLE: objects_url,
        GROUP_VARIABLE: group.id,
        MEMBERS_VARIABLE: attempts,
        KEY_VARIABLE: group.key,
    }
