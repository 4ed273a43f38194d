"""From what a person named to a new run: a file that is deployed first, or a workflow that is known already."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from ork.app import Installation
from ork.cli.definitions import default_file, is_file_name, parse_params, print_problems, read_version
from ork.errors import DefinitionError, NotFoundError
from ork.model.ids import ID_ALPHABET, RUN_ID_LENGTH, RunId
from ork.model.run import NewRun, Run
from ork.settings import Settings

if TYPE_CHECKING:
    from ork.model.workflow import Version


class Prepared(NamedTuple):
    """A version to deploy and run, or the name of a workflow to run as it is known."""

    version: Version | None
    name: str
    params: Sequence[str]
    key: str | None = None


def prepare(named: str | None, params: Sequence[str], settings: Settings, *, as_json: bool) -> Prepared | None:
    """Checks everything that can be checked before a store is touched; None after telling a person what is wrong."""
    named = named or default_file()
    if not is_file_name(named):
        return Prepared(None, named, params)
    try:
        version = read_version(named, settings)
    except DefinitionError as error:
        if as_json:
            raise
        print_problems(error.problems)
        print(f"{_errors(len(error.problems))}. Nothing was run.", file=sys.stderr)
        return None
    parse_params(version.workflow, params)
    return Prepared(version, version.workflow.name, params)


async def create_run(installation: Installation, prepared: Prepared) -> Run:
    """The run is durable when this returns."""
    store, now = installation.store, datetime.now(UTC)
    version = prepared.version
    if version is not None:
        await store.save_version(version, origin=version.source, now=now)
    else:
        version = await known_version(installation, prepared.name)
    new = NewRun(
        id=new_run_id(),
        workflow=version.workflow.name,
        version=version.id,
        params=parse_params(version.workflow, prepared.params),
        key=prepared.key,
    )
    return (await store.create_runs([new], now))[0]


async def known_version(installation: Installation, name: str) -> Version:
    entry = await installation.store.get_workflow(name)
    version = await installation.store.get_version(entry.version) if entry else None
    if version is None:
        raise NotFoundError(f"no workflow `{name}` here", hint="`ork workflows` lists them; `ork deploy FILE` adds one")
    return version


def new_run_id() -> RunId:
    return RunId("".join(ID_ALPHABET[byte % len(ID_ALPHABET)] for byte in os.urandom(RUN_ID_LENGTH)))


def _errors(number: int) -> str:
    return "1 error" if number == 1 else f"{number:,} errors"
