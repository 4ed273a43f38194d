"""Prices of what runs use, in US dollars, as the price file lists them."""

from __future__ import annotations

from collections.abc import Mapping

from ork.model.record import Record, made


def dollars(usd: float) -> str:
    """An amount for people: `$12.50`, with more digits for less than a cent."""
    if usd == 0 or usd >= 0.995e-2:
        return f"${usd:,.2f}"
    return f"${usd:.2g}" if usd >= 1e-4 else f"${usd:.7f}".rstrip("0")


NO_REGIONS: Mapping[str, float] = {}


class PriceSource(Record):
    """Where a price was found. `is_checked` is False for prices that could not be looked up."""

    title: str
    url: str | None = None
    date: str | None = None
    is_checked: bool = True


class Price(Record):
    """Dollars for one unit; `regions` has other amounts by the name of a region."""

    usd: float
    source: str
    regions: Mapping[str, float] = NO_REGIONS
    free: str | None = None  # what is not billed, for people

    def in_region(self, region: str | None) -> float:
        return self.usd if region is None else self.regions.get(region, self.usd)


class BilledTime(Record):
    """For how long an attempt is billed: at least `minimum_seconds`, in steps of `step_seconds`."""

    minimum_seconds: float = 0.0
    step_seconds: float = 0.0


BY_THE_SECOND = BilledTime()


class Prices(Record):
    """The content of a price file. Names are `service.unit`, such as `cloudrun.vcpu_second`."""

    date: str
    items: Mapping[str, Price] = made(default_factory=dict)
    billing: Mapping[str, BilledTime] = made(default_factory=dict)  # by service
    sources: Mapping[str, PriceSource] = made(default_factory=dict)
    file: str | None = None  # of the project; None: as shipped with Ork

    def usd(self, name: str, region: str | None = None) -> float | None:
        """The price of one unit; None if it is not known."""
        price = self.items.get(name)
        return None if price is None else price.in_region(region)


class OperationCounts(Record):
    """How many operations of one kind Ork makes, as tests counted them."""

    per_run: float = 0.0
    per_task: float = 0.0  # each attempt of a task
    per_instance: float = 0.0  # each attempt of an instance of a fan-out
    per_minute: float = 0.0  # each minute that an attempt runs


class OperationPrice(Record):
    """Operations of one kind, such as `firestore.read`, and dollars for one; None if that is not known."""

    name: str
    counts: OperationCounts
    usd: float | None


class AttemptPrice(Record):
    """What an attempt of a task costs. None is unknown, which is not zero."""

    where: str
    vcpus: float | None = None
    gib: float | None = None
    usd_per_second: float | None = None  # of its machine
    billed: BilledTime = BY_THE_SECOND
    operations: tuple[OperationPrice, ...] = ()
    why_unknown: str | None = None
