"""The orders for launch groups, from those of their attempts."""

from __future__ import annotations

from collections.abc import Sequence

from ork.executors.executor import GroupOrder, LaunchOrder
from ork.model.task import GroupPlace
from ork.objects import documents


def group_orders(orders: Sequence[LaunchOrder], signing_key: bytes) -> list[GroupOrder]:
    """One order for each group, with its attempts in the order of their index. All of `orders` belong to groups."""
    members: dict[str, list[tuple[GroupPlace, LaunchOrder]]] = {}
    for order in orders:
        if (place := order.attempt.group) is not None:
            members.setdefault(place.id, []).append((place, order))
    groups = []
    for id, found in members.items():
        found.sort(key=lambda each: each[0].index)
        key, parallelism = documents.group_key(signing_key, id).hex(), found[0][0].parallelism
        groups.append(GroupOrder(id, parallelism, key, tuple(order for _, order in found)))
    return groups
