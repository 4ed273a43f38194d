"""Which launches fit. Whoever admits holds the locks of the limits until its commit, so the next one counts it too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ork.core.effects import Wish
from ork.core.limits import limit_names, pool_rate
from ork.model.workflow import Rate
from ork.state.admission import ActiveAttempts, Admission, Bucket, Rates, admit, room_left
from ork.state.postgres.connection import Session
from ork.state.postgres.database import Database


async def admit_wishes(db: Database, session: Session, wishes: Sequence[Wish]) -> Admission:
    if not wishes:
        return Admission(frozenset(), frozenset(), None, {})
    names = {name for wish in wishes for name in limit_names(wish.attempt.executor, wish.attempt.pool)}
    limits: dict[str, int] = dict(await session.rows("lock_limits", sorted(names)))
    pools = await _pool_rates(session, wishes)
    # Counted by a statement that begins when the locks are held: it sees whatever was admitted before.
    active = (ActiveAttempts(*row) for row in await session.rows("count_active")) if limits else ()
    buckets = await _open_buckets(db, session, wishes, pools)
    admission = admit(wishes, room_left(limits, active), Rates(pools, lambda name, _rate: buckets[name]))
    drawn_from = sorted((name, bucket.tokens) for name, bucket in admission.buckets.items())
    if drawn_from:
        await session.run("write_buckets", *zip(*drawn_from, strict=True), db.moment())
    return admission


async def _pool_rates(session: Session, wishes: Sequence[Wish]) -> dict[str, Rate]:
    if not any(wish.attempt.pool for wish in wishes):
        return {}
    return {name: Rate(count, seconds) for name, count, seconds in await session.rows("list_rates")}


async def _open_buckets(
    db: Database, session: Session, wishes: Sequence[Wish], pools: Mapping[str, Rate]
) -> dict[str, Bucket]:
    """The bucket of every rate that one of the wishes counts against, locked."""
    rates = dict(wish.rate for wish in wishes if wish.rate is not None)
    for pool in {wish.attempt.pool for wish in wishes} - {None}:
        rate = pools.get(f"pool:{pool}")
        if rate is not None:
            rates[pool_rate(str(pool))] = rate
    if not rates:
        return {}
    full = sorted((name, float(rate.count)) for name, rate in rates.items())
    await session.run("add_buckets", *zip(*full, strict=True), db.moment())
    found = await session.rows("lock_buckets", sorted(rates), db.moment())
    return {name: Bucket(rates[name], tokens, elapsed) for name, tokens, elapsed in found}
