"""Finds runs by trigger, text, param or duration, which no index of a store has: bounded reads of runs, newest first."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from ork.model.ids import ID_ALPHABET, RunId
from ork.model.record import Record, replaced
from ork.model.run import Run
from ork.model.secret import is_sealed
from ork.model.workflow import Trigger
from ork.state.paging import not_ours, read_cursor, write_cursor
from ork.state.reading import StateReader
from ork.state.records import RunFilter, RunPage
from ork.status.grid import EndedRuns, run_seconds
from ork.status.ids import SHORTEST
from ork.status.summary import total_counts

MOST_COUNTED = 1000
MOST_READ = 5000
SECONDS = 3.0
"""A search ends after so many runs or seconds; its cursor continues it."""
MOST_WORKFLOWS = 50
MOST_IDS = 200
MOST_WITH_PROGRESS = 100
_PAGE = 500
_WITH_PARAMS = 100  # fewer, because each run may have a megabyte of params
_INSTANT = timedelta(microseconds=1)


class Sort(StrEnum):
    DURATION = "duration"
    LONGEST = "-duration"


class RunSearch(Record):
    """`where` filters by what stores have indexes of; `text` is part of a workflow's name, or the first four or more
    characters of an id.
    Without any of the others, it is a page of the store."""

    where: RunFilter
    trigger: Trigger | None = None
    text: str | None = None
    param: tuple[str, str] | None = None
    sort: Sort | None = None

    @property
    def is_plain(self) -> bool:
        return self.trigger is None and self.text is None and self.param is None and self.sort is None


class FoundRuns(NamedTuple):
    """`is_partial`: some runs that match are on no page, because too many ids or workflows match, or too many runs were
    there to be sorted."""

    runs: tuple[Run, ...]
    cursor: str | None
    is_partial: bool = False


class Count(NamedTuple):
    """At most MOST_COUNTED; None if they were not counted. `is_exact` is False if there are, or may be, more."""

    number: int | None
    is_exact: bool | None


async def search_runs(store: StateReader, search: RunSearch) -> FoundRuns:
    if search.is_plain:
        return FoundRuns(*await store.list_runs(search.where))
    if search.sort is None:
        return await _Search(store, search).page()
    where = replaced(search.where, limit=MOST_COUNTED, cursor=None)
    found = await search_runs(store, replaced(search, where=where, sort=None))
    ended = [run for run in found.runs if run_seconds(run) is not None]
    ended.sort(key=lambda run: run_seconds(run) or 0.0, reverse=search.sort is Sort.LONGEST)
    return FoundRuns(tuple(ended[: search.where.limit]), None, found.cursor is not None or found.is_partial)


async def count_runs(store: StateReader, search: RunSearch) -> Count:
    """How many runs match, on all pages together."""
    where = replaced(search.where, limit=MOST_COUNTED, cursor=None)
    found = await search_runs(store, replaced(search, where=where, sort=None))
    return Count(len(found.runs), found.cursor is None and not found.is_partial)


async def progress_of(store: StateReader, ended: EndedRuns, runs: Sequence[Run]) -> list[dict[str, int] | None]:
    """The tasks that have ended, of all; for the first MOST_WITH_PROGRESS runs."""
    shown: list[dict[str, int] | None] = [None] * len(runs)
    for place, run in enumerate(runs[:MOST_WITH_PROGRESS]):
        totals = total_counts(await ended.counts(store, run))
        done = sum(number for status, number in totals.items() if status.is_final)
        shown[place] = {"done": done, "total": sum(totals.values())}
    return shown


class _Search:
    """Reads runs newest first, from one or several sources, and keeps those that match."""

    def __init__(self, store: StateReader, search: RunSearch) -> None:
        self._store = store
        self._search = search
        self._until = time.monotonic() + SECONDS
        self._read = 0
        self._is_partial = False
        self._before = None if search.where.cursor is None else _read_place(search.where.cursor)

    async def page(self) -> FoundRuns:
        sources = await self._sources()
        wanted, found = self._search.where.limit, list[Run]()
        while (some := await _newest(sources)) and len(found) <= wanted:
            matching = [run for run in some if self._matches(run)]
            found += matching if self._search.param is None else await self._with_param(matching)
            self._read += len(some)
            if len(found) <= wanted and (self._read >= MOST_READ or time.monotonic() > self._until):
                return FoundRuns(tuple(found), _write_place(some[-1]), self._is_partial)
        shown = tuple(found[:wanted])
        return FoundRuns(shown, _write_place(shown[-1]) if len(found) > wanted else None, self._is_partial)

    async def _sources(self) -> list[_RunSource]:
        where = self._search.where
        if self._before is not None:
            latest = self._before[0] + _INSTANT
            where = replaced(where, created_before=min(where.created_before or latest, latest))
        size = _PAGE if self._search.param is None else _WITH_PARAMS
        where, text = replaced(where, cursor=None, limit=size), self._search.text
        if text is None:
            return [_RunSource(self._store, where, self._before)]
        names = await self._workflows(text.casefold())
        where = replaced(where, limit=min(size, MOST_READ // max(len(names), 1)))
        if self._search.trigger is None and self._search.param is None:
            where = replaced(where, limit=min(where.limit, self._search.where.limit + 1))
        sources = [_RunSource(self._store, replaced(where, workflow=name), self._before) for name in names]
        return [*sources, _Listed(await self._by_id(text.lower(), names), self._before)]

    async def _workflows(self, text: str) -> list[str]:
        """The workflows whose names have the text. One that was deleted is found by its whole name."""
        only = self._search.where.workflow
        names = [text, *(entry.name for entry in await self._store.list_workflows() if text in entry.name.casefold())]
        wanted = [name for name in dict.fromkeys(names) if only in (None, name)]
        self._is_partial |= len(wanted) > MOST_WORKFLOWS
        return wanted[:MOST_WORKFLOWS]

    async def _by_id(self, prefix: str, names: Sequence[str]) -> list[Run]:
        """The runs whose ids begin with the text, without those of workflows that are read anyway."""
        if len(prefix) < SHORTEST or any(character not in ID_ALPHABET for character in prefix):
            return []
        ids = await self._store.find_runs(prefix, MOST_IDS + 1)
        self._is_partial |= len(ids) > MOST_IDS
        runs = await _get_runs(self._store, ids[:MOST_IDS])
        return [run for run in runs if run.workflow not in names and _is_in(self._search.where, run)]

    def _matches(self, run: Run) -> bool:
        return self._search.trigger in (None, run.trigger)

    async def _with_param(self, runs: Sequence[Run]) -> list[Run]:
        """Those with the param. A sensitive value cannot be searched for."""
        assert self._search.param is not None
        name, text = self._search.param
        found = await self._store.param_values([run.id for run in runs], name)
        return [run for run in runs if run.id in found and _is_shown_as(found[run.id], text)]


class _RunSource:
    """Runs of one filter, newest first, from before a place on."""

    def __init__(self, store: StateReader, where: RunFilter, before: tuple[datetime, str] | None) -> None:
        self._store = store
        self._where: RunFilter | None = where
        self._before = before
        self.runs: list[Run] = []

    async def fill(self) -> None:
        """Reads the next page if there is nothing left of the one before."""
        while not self.runs and self._where is not None:
            page: RunPage = await self._store.list_runs(self._where)
            self.runs = [run for run in page.runs if self._before is None or _place(run) < self._before]
            self._where = None if page.cursor is None else replaced(self._where, cursor=page.cursor)


class _Listed(_RunSource):
    """Runs that have been read already."""

    def __init__(self, runs: Sequence[Run], before: tuple[datetime, str] | None) -> None:
        shown = [run for run in runs if before is None or _place(run) < before]
        self.runs = sorted(shown, key=_place, reverse=True)

    async def fill(self) -> None:
        return


async def _newest(sources: Sequence[_RunSource]) -> list[Run]:
    """The next runs of all sources together: those that are certainly the newest."""
    for source in sources:
        await source.fill()
    heads = [source for source in sources if source.runs]
    if not heads:
        return []
    # A source may have older runs than its page shows, but none that is newer than the page's end.
    end = max(_place(source.runs[-1]) for source in heads)
    taken = [run for source in heads for run in source.runs if _place(run) >= end]
    for source in heads:
        source.runs = [run for run in source.runs if _place(run) < end]
    return sorted(taken, key=_place, reverse=True)


async def _get_runs(store: StateReader, ids: Sequence[RunId]) -> list[Run]:
    return [run for id in ids if (run := await store.get_run(id)) is not None]


def _is_in(where: RunFilter, run: Run) -> bool:
    is_late = where.created_before is not None and run.created_at >= where.created_before
    is_early = where.created_after is not None and run.created_at < where.created_after
    is_other = bool(where.statuses) and run.status not in where.statuses
    return where.workflow in (None, run.workflow) and not is_late and not is_early and not is_other


def _is_shown_as(value: Any, text: str) -> bool:
    """Whether this is the text of the value: the value itself if it is a text, else its JSON, however it is spaced."""
    import json

    if is_sealed(value):
        return False
    if isinstance(value, str):
        return value == text
    try:
        return json.dumps(value, sort_keys=True) == json.dumps(json.loads(text), sort_keys=True)
    except (ValueError, RecursionError):
        return False


def _place(run: Run) -> tuple[datetime, str]:
    return run.created_at, run.id


def _write_place(run: Run) -> str:
    return write_cursor(f"{run.created_at.astimezone(UTC).isoformat()}", run.id)


def _read_place(cursor: str) -> tuple[datetime, str]:
    created_at, id = read_cursor(cursor)
    try:
        return datetime.fromisoformat(created_at).astimezone(UTC), id
    except ValueError:
        raise not_ours() from None
