from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum
from uuid import UUID


class Status(Enum):
    PAID = "paid"
    OPEN = "open"


@dataclass
class Order:
    id: UUID
    placed_on: date
    status: Status
    cents: int


@dataclass
class Summary:
    day: date
    cents_by_status: dict[Status, int]
    oldest_open: Order | None


def read_orders(day: date) -> list[Order]:
    statuses = [Status.PAID, Status.OPEN, Status.PAID]
    return [Order(UUID(int=n), day - timedelta(days=n), status, 1000 * (n + 1)) for n, status in enumerate(statuses)]


def summarise(read_orders: list[Order], day: date) -> Summary:
    totals = {status: sum(o.cents for o in read_orders if o.status is status) for status in Status}
    still_open = [order for order in read_orders if order.status is Status.OPEN]
    return Summary(day, totals, min(still_open, key=lambda order: order.placed_on, default=None))


def render(summarise: Summary, currency: str) -> str:
    oldest = summarise.oldest_open.placed_on if summarise.oldest_open else None
    lines = [f"{status.value}: {summarise.cents_by_status[status] / 100:.2f} {currency}" for status in Status]
    return "; ".join([f"{summarise.day:%d.%m.%Y}", *lines, f"oldest open: {oldest}"])
