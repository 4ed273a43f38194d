"""`ork deploy` and `ork trigger`: registers workflows, and creates runs of them."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from ork.cli.arguments import workflow_argument
from ork.cli.definitions import all_versions, definition_error, print_problems, read_definitions, workflow_files
from ork.cli.errors import DONE, WRONG_USE
from ork.cli.session import (
    current_user,
    json_option,
    note_other_project,
    now,
    print_json,
    run_short,
    settings_of,
    store_options,
)

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.model.workflow import Version
    from ork.settings import Settings


@click.command(name="deploy")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@json_option
@store_options
def deploy_command(files: tuple[str, ...], as_json: bool) -> int:
    """Register workflow files: new runs use the new version, existing runs keep theirs.

    Nothing is registered unless all files are valid. An unchanged file creates no new version.

    \b
    Example:  ork deploy flows/*.yaml
    """
    files = workflow_files(files)
    settings = settings_of(*files)
    results = [read for file in files for read in read_definitions(file, settings)]
    problems = [problem for result in results for problem in result.problems]
    if problems:
        if as_json:
            raise definition_error(problems)
        print_problems(problems)
        print(f"{len(problems):,} error{'' if len(problems) == 1 else 's'}. Nothing was deployed.", file=sys.stderr)
        return WRONG_USE
    versions = all_versions((read, read.workflow) for read in results if read.workflow)
    are_new, is_served = run_short(lambda installation: _save(installation, versions), creates=True)
    notes = _notes(versions, settings, is_served)
    if as_json:
        rows = [
            {"name": v.workflow.name, "version": v.id, "new": new} for v, new in zip(versions, are_new, strict=True)
        ]
        print_json({"workflows": rows, "notes": notes})
        return DONE
    note_other_project(settings)
    for version, new in zip(versions, are_new, strict=True):
        print(f"✓ {version.workflow.name}  version {version.id}{'' if new else ' (unchanged)'}")
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    return DONE


def _notes(versions: list[Version], settings: Settings, is_served: bool) -> list[str]:
    """Notes about the deployed workflows: schedules that cannot fire, budgets without effect, failures that alert no one."""
    from ork.alerts.channels import has_global_channel
    from ork.status.schedulers import NOTHING_FIRES

    scheduled = [each.workflow for each in versions if each.workflow.schedule and each.workflow.schedule.enabled]
    notes = [NOTHING_FIRES] if scheduled and not is_served else []
    if settings.server is not None:  # a server has an ork.yaml of its own
        return notes
    budgeted = [each.workflow for each in versions if each.workflow.budget is not None]
    if budgeted:
        from ork.app.pricing import budget_notes

        notes += [note for workflow in budgeted for note in budget_notes(workflow, settings)]
    if has_global_channel(settings.alerts):
        return notes
    advice = "nobody is notified when it fails; add `alerts: [NAME]`"
    notes += [f"{each.name} has a schedule and no alert target: {advice}" for each in scheduled if not each.alerts]
    advice = "nobody is notified when it is exceeded; add `alerts: [NAME]`"
    return notes + [f"{each.name} has a budget and no alert target: {advice}" for each in budgeted if not each.alerts]


async def _save(installation: Installation, versions: list[Version]) -> tuple[list[bool], bool]:
    """Saves the versions. Returns which of them are new, and whether a scheduler fires schedules."""
    from ork.status.schedulers import fires_schedules
    from ork.status.schedules import deploy

    time, are_new = now(), []
    for version in versions:
        are_new.append(await deploy(installation.store, version, origin=version.source, now=time))
        await installation.record(
            current_user(), "workflow.deploy", version.workflow.name, f'{{"version": "{version.id}"}}'
        )
    return are_new, await fires_schedules(installation.store)


@click.command(name="trigger")
@workflow_argument
@click.option(
    "-p", "--param", "params", multiple=True, metavar="KEY=VALUE", help="A param of the run; may be repeated."
)
@click.option(
    "--key", metavar="KEY", help="Idempotency key: a second call with the same key and params returns the same run."
)
@click.option("--wait", is_flag=True, help="Wait until the run has ended; exit 0 only if it succeeded.")
@json_option
@store_options
def trigger_command(name: str, params: tuple[str, ...], key: str | None, wait: bool, as_json: bool) -> int:
    """Create a run of a deployed workflow and print its id. A scheduler does the work.

    \b
    Example:  ork trigger my_etl -p day=2026-01-01 --key nightly-2026-01-01
    """
    from ork.cli.commands.run import create_detached
    from ork.cli.new_run import Prepared, create_run

    create = partial(create_run, prepared=Prepared(None, name, params, key))
    run = create_detached(create, as_json=as_json, creates=False)
    if not wait:
        return DONE
    from ork.cli.commands.run import wait_for_end

    return wait_for_end(run.id)
