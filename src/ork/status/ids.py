"""Makes ids of runs, and resolves run names: any unique id prefix, `@last`, and `RUN/TASK[INDEX]` for a task of a run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from ork.errors import NotFoundError, UsageError
from ork.model.ids import ID_ALPHABET, RUN_ID_LENGTH, RunId, TaskKey
from ork.model.record import replaced
from ork.model.run import Run
from ork.state.reading import StateReader
from ork.state.records import RunFilter

SHORTEST = 4
LAST = "@last"


class RunTarget(NamedTuple):
    """A run, and optionally a task or one instance of it, as a person named them."""

    run: str
    task: str | None = None
    instance: int | None = None


def new_run_id() -> RunId:
    return RunId("".join(ID_ALPHABET[byte % len(ID_ALPHABET)] for byte in os.urandom(RUN_ID_LENGTH)))


def parse_target(run: str, task: str | None = None) -> RunTarget:
    """Parses `RUN`, `RUN TASK`, `RUN/TASK` and `RUN/TASK[3]`."""
    if "/" in run:
        run, _, named = run.partition("/")
        if task is not None:
            raise UsageError(f"the task is named twice: `{named}` and `{task}`")
        task = named
    if not task:
        return RunTarget(run)
    name, bracket, rest = task.partition("[")
    if not bracket:
        return RunTarget(run, name)
    if not rest.endswith("]") or not rest[:-1].isdecimal():
        raise UsageError(f"`{task}` is not a task", hint="write TASK or TASK[3]")
    return RunTarget(run, name, int(rest[:-1]))


async def resolve_run(store: StateReader, text: str) -> RunId:
    """The id of the named run. Unknown and ambiguous names are errors with a hint."""
    if text == LAST:
        return await _last_run(store)
    prefix = text.lower()
    if not prefix or any(character not in ID_ALPHABET for character in prefix):
        raise NotFoundError(f"no run `{text}`", hint="`ork runs` lists them")
    found = await store.find_runs(prefix, 5)
    if not found:
        raise NotFoundError(f"no run `{text}`", hint="`ork runs` lists them")
    if len(found) > 1 and prefix not in found:
        raise UsageError(f"`{text}` matches several runs: {', '.join(found)}", hint="give more of the id")
    return RunId(prefix) if prefix in found else found[0]


async def _last_run(store: StateReader) -> RunId:
    """The newest run that is not a sub-workflow of another (its parent would be `RUN/TASK/…`)."""
    query = RunFilter()
    while True:
        page = await store.list_runs(query)
        own = next((run for run in page.runs if "/" not in (run.parent or "")), None)
        if own is not None:
            return own.id
        if page.cursor is None:
            raise NotFoundError("there are no runs yet", hint="start one with `ork run`")
        query = replaced(query, cursor=page.cursor)


async def topmost_run(store: StateReader, run: Run) -> RunId:
    """The outermost run that contains this one as a sub-workflow, or the run itself."""
    while "/" in (run.parent or ""):
        above = await store.get_run(RunId(str(run.parent).partition("/")[0]))
        if above is None:
            break
        run = above
    return run.id


async def short_id(store: StateReader, run: RunId) -> str:
    """The shortest prefix of at least four characters that names this run alone."""
    return (await store.shorten_ids([run], SHORTEST))[run]


async def short_ids(store: StateReader, runs: Iterable[RunId]) -> dict[RunId, str]:
    wanted = [*runs]
    return dict(await store.shorten_ids(wanted, SHORTEST)) if wanted else {}


def pick_tasks(keys: Iterable[TaskKey], target: RunTarget) -> list[TaskKey]:
    """The tasks that the target names: all, those of one name, or one instance. NotFoundError if there are none."""
    known = list(keys)
    if target.task is None:
        return known
    chosen = [key for key in known if key.name == target.task and target.instance in (None, key.index)]
    if chosen:
        return chosen
    raise no_task(target, {key.name for key in known})


def no_task(target: RunTarget, names: Iterable[str]) -> NotFoundError:
    """The error for a target whose task a run with these tasks does not have."""
    from difflib import get_close_matches

    assert target.task is not None
    close = get_close_matches(target.task, names, 1)
    named = target.task if target.instance is None else f"{target.task}[{target.instance}]"
    return NotFoundError(f"no task `{named}` in this run", hint=f"did you mean `{close[0]}`?" if close else None)
