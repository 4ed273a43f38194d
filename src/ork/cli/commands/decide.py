"""`ork approve` and `ork reject`: what a person says to a task that waits for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ork.cli.commands.act import Wish, ask, named_task
from ork.cli.errors import DONE
from ork.cli.session import json_option, store_options
from ork.errors import RefusedError, UsageError

if TYPE_CHECKING:
    from ork.model.ids import TaskKey
    from ork.status.follow import RunView
    from ork.status.ids import Target

COMMENT = click.option("--comment", metavar="TEXT", help="Kept with the decision.")
DETACH = click.option("--detach", is_flag=True, help="Only decide; some scheduler will go on with the run.")


@click.command(name="approve")
@click.argument("run")
@click.argument("task", required=False)
@COMMENT
@DETACH
@json_option
@store_options
def approve_command(run: str, task: str | None, comment: str | None, detach: bool, as_json: bool) -> int:
    """Say yes to a task that waits for a person. Who decided is kept.

    If nobody works on the run, this process does, and shows how it goes.

    \b
    Example:  ork approve 7f3k release --comment "numbers look right"
    """
    return _decide("approve", run, task, comment, detach, as_json)


@click.command(name="reject")
@click.argument("run")
@click.argument("task", required=False)
@COMMENT
@DETACH
@json_option
@store_options
def reject_command(run: str, task: str | None, comment: str | None, detach: bool, as_json: bool) -> int:
    """Say no to a task that waits for a person: it fails, and what depends on it is skipped.

    \b
    Example:  ork reject 7f3k release --comment "not before Monday"
    """
    return _decide("reject", run, task, comment, detach, as_json)


def _decide(kind: str, run: str, task: str | None, comment: str | None, detach: bool, as_json: bool) -> int:
    asked = ask(run, Wish(kind, task, comment=comment, choose=_waiting_task), as_json)
    if detach or asked.is_served:
        return DONE
    from ork.cli.commands.run import go_on

    go_on(asked.run.id, quietly=as_json)
    return DONE


def _waiting_task(view: RunView, target: Target) -> str | None:
    """Refused here, while a person looks, rather than ignored later."""
    from ork.model.ids import TaskKey

    named = named_task(view, target)
    # A final run is refused by the store, in words of its own.
    if view.run.status.is_final:
        return named
    if target.task is None:
        return _only_question(view)
    _check_waits(view, TaskKey(target.task, target.instance))
    return named


def _only_question(view: RunView) -> str:
    """The task that waits for a person, where there is only one."""
    from ork.status.why import waits_for_a_person

    waiting = [str(key) for key, task in view.tasks.items() if waits_for_a_person(view, task)]
    if len(waiting) != 1:
        named = f": {', '.join(waiting)}" if waiting else ""
        raise UsageError(f"{len(waiting)} tasks wait for a person{named}", hint=f"ork show {view.short}")
    return waiting[0]


def _check_waits(view: RunView, key: TaskKey) -> None:
    from ork.model.workflow import Approval
    from ork.status.why import waits_for_a_person

    task = view.tasks[key]
    hint = f"ork why {view.short} {key}"
    if not isinstance(view.specs[key.name].action, Approval):
        raise RefusedError(f"`{key}` does not wait for a person: it has no `approval`", hint=hint)
    if not waits_for_a_person(view, task):
        raise RefusedError(f"`{key}` does not wait for a person now: it is {task.status}", hint=hint)
