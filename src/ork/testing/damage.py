"""Rows that become unreadable while an installation works, and are repaired when the faults stop.

`World.damages` says how many; `ork.testing.world` calls `strike` at random moments and `repair` at the end. The worlds must
have neither limits nor `max_active_runs`: a run that is set aside takes no slot, and takes it again when it is resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from ork.model.ids import RunId
from ork.state.sqlite.connection import Connection

GARBAGE = "oops"
_TARGETS = (("runs", "id", "params"), ("tasks", "run_id", "failure"), ("tasks", "run_id", "retry_at"))


class Damaged(NamedTuple):
    table: str
    column: str
    key: tuple[object, ...]
    before: object


class Damage:
    """Damages rows of unfinished runs that users started."""

    def __init__(self, seed: int, connection: Connection | None, runs: Callable[[], Sequence[RunId]]) -> None:
        self.random = Random(f"damage {seed}")
        self.victims: set[RunId] = set()
        self._connection = connection
        self._runs = runs
        self._done: list[Damaged] = []

    def strike(self) -> None:
        runs = self._runs()
        if not runs or self._connection is None:
            return
        run, (table, id, column) = self.random.choice(runs), self.random.choice(_TARGETS)
        keys = "id" if table == "runs" else "run_id, ordinal, idx"
        raw = self._connection.raw
        rows = raw.execute(f"SELECT {column}, {keys} FROM {table} WHERE {id} = ? ORDER BY {keys}", (run,)).fetchall()
        if rows:
            before, *key = self.random.choice(rows)
            if before != GARBAGE:
                self._done.append(Damaged(table, column, tuple(key), before))
                self._write(self._done[-1], GARBAGE)
                self.victims.add(run)

    def repair(self) -> None:
        """Repair the damaged rows. Rows that were rewritten in the meantime are left unchanged."""
        for damaged in self._done:
            self._write(damaged, damaged.before, only_garbage=True)

    def _write(self, damaged: Damaged, value: object, *, only_garbage: bool = False) -> None:
        keys = ("id",) if damaged.table == "runs" else ("run_id", "ordinal", "idx")
        where = " AND ".join(f"{key} = ?" for key in keys) + (
            f" AND {damaged.column} = '{GARBAGE}'" if only_garbage else ""
        )
        statement = f"UPDATE {damaged.table} SET {damaged.column} = ? WHERE {where}"
        assert self._connection is not None, "nothing is damaged there"
        self._connection.raw.execute(statement, (value, *damaged.key))
