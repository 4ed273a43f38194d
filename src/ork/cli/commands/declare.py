"""`ork declare-dead`: what a person knows and Ork cannot find out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ork.cli.commands.act import Wish, ask
from ork.cli.commands.decide import DETACH
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
    """Say that an attempt is over whose machine no longer answers. The retry rule decides what follows.

    Only for an attempt that is being given up: `ork why` says when this is waited for. If it is alive after all, its next
    attempt runs beside it. Who said so is kept.

    \b
    Example:  ork declare-dead 7f3k load[3]
    """
    asked = ask(run, Wish("declare-dead", task, check=_check), as_json, detach=detach)
    if detach or asked.is_served:
        return DONE
    from ork.cli.commands.run import go_on

    go_on(asked.run.id, quietly=as_json)
    return DONE


async def _check(installation: Installation, view: RunView, key: TaskKey) -> None:
    if not installation.can_work:
        return  # the server looks
    from ork.status.declare_dead import check_declared_dead

    stale = installation.settings.stale_seconds
    await check_declared_dead(installation.store, installation.objects, view, key, now(), stale)
