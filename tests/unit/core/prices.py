"""A price list for tests: every attempt costs the same."""

from __future__ import annotations

from ork.model.prices import AttemptPrice, BilledTime, OperationCounts, OperationPrice
from ork.model.workflow import TaskSpec


class OnePrice:
    """A dollar for each second, unless said otherwise."""

    def __init__(
        self,
        usd_per_second: float | None = 1.0,
        billed: BilledTime | None = None,
        operations: tuple[OperationPrice, ...] = (),
    ) -> None:
        why = "nobody knows" if usd_per_second is None else None
        self.price = AttemptPrice("cloudrun", 2.0, 4.0, usd_per_second, billed or BilledTime(), operations, why)

    def of(self, spec: TaskSpec | None, _executor: str) -> AttemptPrice:
        return self.price if spec is not None else AttemptPrice("?", why_unknown="no such task")

    def per_run(self) -> tuple[OperationPrice, ...]:
        return self.price.operations


def operations(usd: float | None = 0.01) -> tuple[OperationPrice, ...]:
    return (OperationPrice("firestore.write", OperationCounts(8, 2, 0.5, 6), usd),)
