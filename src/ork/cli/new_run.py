"""Creates a run of a file, which is deployed first, or of a deployed workflow."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from ork.app.installation import Installation
from ork.cli.definitions import default_file, is_file_name, parse_params, print_problems, read_versions
from ork.cli.session import current_user, note_other_project, settings_of
from ork.errors import DefinitionError, NotFoundError, UsageError
from ork.model.run import NewRun, Run
from ork.model.secret import has_sensitive
from ork.status.ids import new_run_id
from ork.status.schedules import deploy

if TYPE_CHECKING:
    from ork.model.workflow import CompiledWorkflow, Version


class Prepared(NamedTuple):
    """A version to deploy and run, or the name of a deployed workflow."""

    version: Version | None
    name: str
    params: Sequence[str]
    key: str | None = None
    fresh: bool = False  # without cached outputs
    others: Sequence[Version] = ()  # its sub-workflows from the same file


def prepare(named: str | None, params: Sequence[str], *, as_json: bool, chosen: str | None = None) -> Prepared | None:
    """Checks everything that can be checked without a store. None if errors were printed."""
    named = named or default_file()
    if not is_file_name(named):
        if chosen is not None:
            raise UsageError(f"`{named}` is not a file", hint=f"`ork run {chosen}` runs a deployed workflow")
        return Prepared(None, named, params)
    settings = settings_of(named)
    try:
        version, *others = read_versions(named, settings, chosen)
    except DefinitionError as error:
        if as_json:
            raise
        print_problems(error.problems)
        print(f"{_errors(len(error.problems))}. Nothing was run.", file=sys.stderr)
        return None
    parse_params(version.workflow, params)
    note_other_project(settings)
    return Prepared(version, version.workflow.name, params, others=others)


async def create_run(installation: Installation, prepared: Prepared) -> Run:
    """Creates the run. It is stored durably when this returns."""
    store, now = installation.store, datetime.now(UTC)
    version = prepared.version
    entry = await store.get_workflow(prepared.name)
    for each in (version, *prepared.others) if version is not None else ():
        await deploy(store, each, origin=each.source, now=now)
    if version is None:
        version = await known_version(installation, prepared.name)
    if entry is not None and not entry.enabled:
        await _keep_disabled(installation, prepared.name)
    new = NewRun(
        id=new_run_id(),
        workflow=version.workflow.name,
        version=version.id,
        params=await stored_params(installation, version.workflow, parse_params(version.workflow, prepared.params)),
        key=prepared.key,
        fresh=prepared.fresh,
        started_by=current_user(),
    )
    return (await store.create_runs([new], now))[0]


async def create_rerun(
    installation: Installation,
    earlier: Run,
    params: Sequence[str],
    *,
    fresh: bool,
    latest: bool,
    same_code: bool = False,
) -> Run:
    """Creates a run with the version and params of an earlier one, except for those given, and links it to that run."""
    store = installation.store
    if same_code:
        version: Version | None = await _with_same_code(installation, earlier)
    else:
        version = None if latest else await store.get_version(earlier.version)
    if version is None:
        version = await known_version(installation, earlier.workflow)
    workflow = version.workflow
    declared = {param.name for param in workflow.params}
    kept = {name: value for name, value in earlier.params.items() if name in declared}
    new = NewRun(
        id=new_run_id(),
        workflow=workflow.name,
        version=version.id,
        params=await stored_params(installation, workflow, parse_params(workflow, params, kept)),
        fresh=fresh,
        parent=earlier.id,
        started_by=current_user(),
    )
    return (await store.create_runs([new], datetime.now(UTC)))[0]


async def _with_same_code(installation: Installation, earlier: Run) -> Version:
    """Says where the code is if it is not in the project's folder: files that tasks name by relative paths are there, too."""
    version = await installation.same_code_version(earlier)
    if version.id != earlier.version and version.code is not None:
        from ork.status.code_report import commit_text

        print(
            f"note: {commit_text(version.code)} is checked out, and its tasks run, in {version.root}", file=sys.stderr
        )
    return version


async def _keep_disabled(installation: Installation, name: str) -> None:
    """Deploying enables a workflow; starting a run by hand must not enable its schedule."""
    await installation.store.set_enabled(name, False)
    print(f"note: workflow {name} is disabled: its schedule does not fire, but this run starts", file=sys.stderr)


async def known_version(installation: Installation, name: str) -> Version:
    entry = await installation.store.get_workflow(name)
    version = await installation.store.get_version(entry.version) if entry else None
    if version is None:
        raise NotFoundError(f"no workflow `{name}`", hint="`ork workflows` lists them; `ork deploy FILE` adds one")
    return version


async def stored_params(
    installation: Installation, workflow: CompiledWorkflow, params: dict[str, Any]
) -> dict[str, Any]:
    """Checked params in the form that a new run stores: sensitive ones are encrypted. A server does that itself."""
    if not installation.can_work or not has_sensitive(workflow):
        return params
    from ork.state.sealing import stored_params

    return await stored_params(installation.store, workflow, params)


def _errors(number: int) -> str:
    return "1 error" if number == 1 else f"{number:,} errors"
