"""`ork declare-dead`: ends the wait for an attempt whose machine does not respond."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ork.cli.commands.approvals import DETACH
from ork.cli.commands.run_commands import CommandRequest, submit
from ork.cli.errors import DONE
from ork.cli.session import json_option, now, store_options

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.model.ids import TaskKey
    from ork.status.run_view import RunView


@click.command(name="declare-dead")
@click.argument("run")
@click.argument("task")
@DETACH
@json_option
@store_options
def declare_dead_command(run: str, task: str, detach: bool, as_json: bool) -> int:
    """Declare an attempt dead whose machine does not respond. Its retry policy decides what follows.

    Only for an attempt that is being given up: `ork why` says if this is needed. If it is alive after all, the next
    attempt overlaps with it. Your name is recorded.

    \b
    Example:  ork declare-dead 7f3k load[3]
    """
    submitted = submit(run, CommandRequest("declare-dead", task, check=_check), as_json, detach=detach)
    if detach or submitted.is_served:
        return DONE
    from ork.cli.commands.run import continue_run

    continue_run(submitted.run.id, quietly=as_json)
    return DONE


async def _check(installation: Installation, view: RunView, key: TaskKey) -> None:
    if not installation.can_work:
        return  # the server checks it
    from ork.status.declare_dead import check_declared_dead

    stale = installation.settings.stale_seconds
    await check_declared_dead(installation.store, installation.objects, view, key, now(), stale)
