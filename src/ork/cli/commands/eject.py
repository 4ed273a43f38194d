"""`ork eject`: writes a workflow as files that need no Ork."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ork.cli.arguments import complete_file_or_workflow
from ork.cli.definitions import is_file_name, read_versions
from ork.cli.session import current_settings, json_option, print_json, run_short, settings_of, store_options
from ork.errors import NotFoundError

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.model.workflow import Version


@click.command(name="eject")
@click.argument("what", metavar="RUN|WORKFLOW|FILE", shell_complete=complete_file_or_workflow)
@click.argument("name", required=False)
@click.option("-o", "--output", required=True, metavar="DIR", help="The new folder; it must be empty.")
@json_option
@store_options
def eject_command(what: str, name: str | None, output: str, as_json: bool) -> None:
    """Write a workflow as a Makefile and a shell script that need no Ork, with its code and its plan.

    A Kubernetes CronJob and a definition for Google's Workflows are added where they fit. Of a run, its version and params
    are used. README.md in the folder says what the files do not do. NAME selects a workflow of a Python file.

    \b
    Example:  ork eject etl.yaml -o etl-make && make -C etl-make -j4
    """
    from ork.eject.folder import eject

    if is_file_name(what):
        settings = settings_of(what)
        version, *rest = read_versions(what, settings, name)
        others, params = {each.workflow.name: each for each in rest}, None
    else:
        settings = current_settings()
        version, others, params = run_short(lambda installation: _stored(installation, what))
    notes = eject(version, output, others, params, settings.script_dir)
    if as_json:
        print_json({"folder": output, "workflow": version.workflow.name, "notes": notes})
        return
    print(f"✓ {version.workflow.name} written to {output.rstrip('/')}/")
    for note in notes:
        print(f"  ! {note}")
    print(f"Next:  cd {output.rstrip('/')} && make -j4   (or ./run.sh)")


async def _stored(installation: Installation, what: str) -> tuple[Version, dict[str, Version], dict[str, Any] | None]:
    """The version of a workflow or run, its sub-workflows, and the params of the run."""
    from ork.status.ids import resolve_run

    store = installation.store
    entry = await store.get_workflow(what)
    params: dict[str, Any] | None = None
    if entry is not None:
        version = await store.get_version(entry.version)
    else:
        try:
            run = await store.get_run(await resolve_run(store, what))
        except NotFoundError as error:
            hint = "`ork workflows` and `ork runs` list them; a file needs its suffix"
            raise NotFoundError(f"no workflow and no run `{what}`", hint=hint) from error
        assert run is not None
        version = await store.get_version(run.version)
        params = dict(run.params or {})
    if version is None:
        raise NotFoundError(f"the version of `{what}` is gone")
    return version, await _children(installation, version), params


async def _children(installation: Installation, version: Version) -> dict[str, Version]:
    from ork.locations.files import sub_workflows

    found: dict[str, Version] = {}
    waiting = sub_workflows(version.workflow)
    while waiting:
        name = waiting.pop()
        entry = None if name in found else await installation.store.get_workflow(name)
        child = await installation.store.get_version(entry.version) if entry is not None else None
        if child is not None:
            found[name] = child
            waiting += sub_workflows(child.workflow)
    return found
