"""`ork deploy` and `ork trigger`: make workflows known, and ask for runs of them."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from ork.cli.definitions import default_file, mistakes, print_problems, read_definitions
from ork.cli.errors import DONE, WRONG_USE
from ork.cli.naming import workflow_argument
from ork.cli.session import json_option, look, note_other_project, now, print_json, settings_of, store_options

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.model.workflow import Version
    from ork.settings import Settings


@click.command(name="deploy")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@json_option
@store_options
def deploy_command(files: tuple[str, ...], as_json: bool) -> int:
    """Register workflow files: new runs get the version in the file, running ones keep theirs.

    Nothing is registered unless every file is right. An unchanged file makes no new version.

    \b
    Example:  ork deploy flows/*.yaml
    """
    from ork.compile.content import make_version

    files = files or (default_file(),)
    settings = settings_of(*files)
    results = [read for file in files for read in read_definitions(file, settings)]
    problems = [problem for result in results for problem in result.problems]
    if problems:
        if as_json:
            raise mistakes(problems)
        print_problems(problems)
        print(f"{len(problems):,} error{'' if len(problems) == 1 else 's'}. Nothing was deployed.", file=sys.stderr)
        return WRONG_USE
    versions = [make_version(read.workflow, read.root, _absolute(read.file)) for read in results if read.workflow]
    news, is_served = look(lambda installation: _save(installation, versions), creates=True)
    notes = _notes(versions, settings, is_served)
    if as_json:
        rows = [{"name": v.workflow.name, "version": v.id, "new": new} for v, new in zip(versions, news, strict=True)]
        print_json({"workflows": rows, "notes": notes})
        return DONE
    note_other_project(settings)
    for version, new in zip(versions, news, strict=True):
        print(f"✓ {version.workflow.name}  version {version.id}{'' if new else ' (unchanged)'}")
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    return DONE


def _notes(versions: list[Version], settings: Settings, is_served: bool) -> list[str]:
    """What a person who deploys this should know, though nothing is wrong."""
    from ork.alerts.channels import hears_of_all
    from ork.status.schedulers import NOTHING_FIRES

    scheduled = [each.workflow for each in versions if each.workflow.schedule and each.workflow.schedule.enabled]
    notes = [NOTHING_FIRES] if scheduled and not is_served else []
    if settings.server is not None or hears_of_all(settings.alerts):  # a server has an ork.yaml of its own
        return notes
    told = "nobody is told when it fails; write `alerts: [NAME]` in it"
    quiet = [workflow.name for workflow in scheduled if not workflow.alerts]
    return notes + [f"{name} has a schedule and no alert target: {told}" for name in quiet]


async def _save(installation: Installation, versions: list[Version]) -> tuple[list[bool], bool]:
    """Which of them are new, and whether somebody is there for whom schedules count."""
    from ork.cli.commands.act import who_asks
    from ork.status.schedulers import fires_schedules
    from ork.status.schedules import deploy

    moment, news = now(), []
    for version in versions:
        news.append(await deploy(installation.store, version, origin=version.source, now=moment))
        await installation.record(
            who_asks(), "workflow.deploy", version.workflow.name, f'{{"version": "{version.id}"}}'
        )
    return news, await fires_schedules(installation.store)


def _absolute(file: str) -> str:
    import os

    return os.path.abspath(file)


@click.command(name="trigger")
@workflow_argument
@click.option(
    "-p", "--param", "params", multiple=True, metavar="KEY=VALUE", help="A param of the run; may be repeated."
)
@click.option("--key", metavar="KEY", help="Idempotency: the same key and params name the same run.")
@click.option("--wait", is_flag=True, help="Stay until the run has ended; exit 0 only if it succeeded.")
@json_option
@store_options
def trigger_command(name: str, params: tuple[str, ...], key: str | None, wait: bool, as_json: bool) -> int:
    """Create a run of a known workflow and print its id. A scheduler does the work.

    \b
    Example:  ork trigger my_etl -p day=2026-01-01 --key nightly-2026-01-01
    """
    from ork.cli.commands.run import created_for_others
    from ork.cli.starting import Prepared, create_run

    create = partial(create_run, prepared=Prepared(None, name, params, key))
    run = created_for_others(create, as_json=as_json, creates=False)
    if not wait:
        return DONE
    from ork.cli.commands.run import wait_for_end

    return wait_for_end(run.id)
