"""Limits without a lock: each scheduler has an account with what its runs hold, and a grant of each limit.

`limits/config` holds the slots of each limit, `accounts/{scheduler}` what is `held` by kind (executor and pool) and the `grant` by limit.
The sum of all grants never exceeds the slots, so a launch within one's own grant needs nobody else: it writes the run and the own
account. Grants grow only in a commit that also writes `limits/config`; what others have been granted and do not use is taken with
preconditions on their accounts. `set_limits` touches every account, so it holds from the next commit on.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ork.core.limits import limit_names
from ork.model.workflow import Rate
from ork.state.firestore.wire import Doc, Put
from ork.state.rows import json_text

CONFIG = "limits/config"


class LimitSettings:
    """`time` is None while nobody has set any. `read` is when they were read."""

    def __init__(self, doc: Doc | None) -> None:
        fields: dict[str, Any] = {"slots": "{}", "rates": "{}"} if doc is None else doc.fields
        self.slots: dict[str, int] = json.loads(fields["slots"])
        self.rates = {name: Rate(*rate) for name, rate in json.loads(fields["rates"]).items()}
        self.time = None if doc is None else doc.time
        self.read = 0 if doc is None else doc.read

    def copy(self) -> LimitSettings:
        return copy.copy(self)

    def put(self) -> Put:
        """Written as it is: whoever relied on it looks again."""
        rates = {name: [rate.count, rate.seconds] for name, rate in self.rates.items()}
        guard = False if self.time is None else self.time
        return Put(CONFIG, {"slots": json_text(self.slots), "rates": json_text(rates)}, guard)


class Account:
    """`held` counts slots by executor and pool, see `RunState.held`. `time` is None if there is no such document yet."""

    def __init__(self, id: str, doc: Doc | None) -> None:
        self.id = id
        self.held: Counter[str] = Counter(json.loads(doc.fields["held"]) if doc else {})
        self.grant: dict[str, int] = json.loads(doc.fields["grant"]) if doc else {}
        self.time = None if doc is None else doc.time

    def copy(self) -> Account:
        copied = Account(self.id, None)
        copied.held, copied.grant, copied.time = Counter(self.held), dict(self.grant), self.time
        return copied

    def used(self, slots: Iterable[str]) -> Counter[str]:
        """How much of each limit its attempts take."""
        return used_by(self.held, slots)

    def spare(self, name: str, slots: Iterable[str]) -> int:
        return max(0, self.grant.get(name, 0) - self.used(slots)[name])

    def room(self, slots: Iterable[str]) -> dict[str, int]:
        used = self.used(slots)
        return {name: self.grant.get(name, 0) - used[name] for name in slots}

    def put(self) -> Put:
        fields = {"held": json_text(+self.held), "grant": json_text(self.grant)}
        return Put(path_of(self.id), fields, False if self.time is None else self.time)

    def inherit(self, other: Account) -> None:
        """The other account, which holds nothing, is deleted: what it was granted is granted to this one."""
        for name, number in other.grant.items():
            self.grant[name] = self.grant.get(name, 0) + number

    def delete(self) -> Put:
        return Put(path_of(self.id), None, self.time)


def path_of(scheduler: str) -> str:
    return f"accounts/{scheduler}"


def used_by(held: Mapping[str, int], slots: Iterable[str]) -> Counter[str]:
    known, used = frozenset(slots), Counter[str]()
    for kind, number in held.items():
        executor, _, pool = kind.partition("\t")
        for name in limit_names(executor, pool or None):
            if name in known:
                used[name] += number
    return used


def room_of_all(slots: Mapping[str, int], accounts: Iterable[Account]) -> dict[str, int]:
    room = Counter(slots)
    for account in accounts:
        room.subtract(account.used(slots))
    return dict(room)


def raise_grants(own: Account, others: Sequence[Account], slots: Mapping[str, int]) -> list[Account]:
    """Covers what `own` holds: from what nobody has been granted (and half of the rest ahead), then from what others do
    not use. Returns the others that gave something."""
    used, givers = own.used(slots), dict[str, Account]()
    for name, most in slots.items():
        free = most - sum(max(other.grant.get(name, 0), other.used(slots)[name]) for other in others)
        before, needed = own.grant.get(name, 0), used[name]
        if needed > before:
            ahead = max(0, free - needed)
            own.grant[name] = max(0, min(needed, free)) + (ahead if not others else ahead // 2)
            short = needed - own.grant[name]
            for other in sorted(others, key=lambda each: -each.spare(name, slots)):
                taken = min(short, other.spare(name, slots))
                if taken > 0:
                    other.grant[name] -= taken
                    own.grant[name] += taken
                    short -= taken
                    givers[other.id] = other
    own.grant = {name: number for name, number in own.grant.items() if name in slots}
    return [*givers.values()]


def move(held: Mapping[str, int], source: Account, target: Account, slots: Mapping[str, int]) -> None:
    """The runs that hold this have another owner: what they hold and its grant go with them."""
    for name, number in used_by(held, slots).items():
        moved = min(number, source.grant.get(name, 0))
        if moved:
            source.grant[name] -= moved
            target.grant[name] = target.grant.get(name, 0) + moved
    source.held.subtract(held)
    target.held.update(held)


def granted_anew(accounts: Sequence[Account], slots: Mapping[str, int]) -> None:
    """For new limits: each account is granted what it uses. Where that exceeds a limit, nobody is granted anything, so
    that every launch looks at all accounts."""
    used = {account.id: account.used(slots) for account in accounts}
    fitting = [name for name, most in slots.items() if sum(each[name] for each in used.values()) <= most]
    for account in accounts:
        account.grant = {name: used[account.id][name] for name in fitting if used[account.id][name]}
