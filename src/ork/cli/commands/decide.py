"""`ork approve` and `ork reject`: what a person says to a task that waits for one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ork.cli.commands.act import Wish, ask
from ork.cli.errors import DONE
from ork.cli.naming import run_argument, task_argument
from ork.cli.session import json_option, look, now, palette, print_json, store_options
from ork.cli.visible import visible

if TYPE_CHECKING:
    from ork.cli.paint import Line
    from ork.status.approvals import PendingApproval

COMMENT = click.option("--comment", metavar="TEXT", help="Kept with the decision.")
DETACH = click.option("--detach", is_flag=True, help="Only decide; some scheduler will go on with the run.")


@click.command(name="approve")
@run_argument
@task_argument
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
@run_argument
@task_argument
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


@click.command(name="approvals")
@json_option
@store_options
def approvals_command(as_json: bool) -> int:
    """What waits for a person: the questions, for whom they are, since when, and until when.

    \b
    Example:  ork approvals
    """
    from ork.status.approvals import approval_json, list_pending_approvals

    questions = look(lambda installation: list_pending_approvals(installation.store))
    if as_json:
        print_json({"approvals": [approval_json(each) for each in questions]})
    elif questions:
        palette(sys.stdout).write(sys.stdout, _lines(questions))
    else:
        print("nothing waits for a person", file=sys.stderr)
    return DONE


def _lines(questions: list[PendingApproval]) -> list[Line]:
    from ork.cli.tables import table
    from ork.status.formatting import ago

    rows = [
        (
            asked.short,
            asked.workflow,
            str(asked.task),
            asked.whom,
            ago(asked.since, now()) if asked.since is not None else "–",
            "never" if asked.due is None else ago(asked.due, now()),
            visible(asked.message),
        )
        for asked in questions
    ]
    return table(("run", "workflow", "task", "for", "waits since", "fails", "question"), rows)


def _decide(kind: str, run: str, task: str | None, comment: str | None, detach: bool, as_json: bool) -> int:
    from ork.status.approval_targets import waiting_task

    asked = ask(run, Wish(kind, task, comment=comment, choose=waiting_task), as_json, detach=detach)
    if detach or asked.is_served:
        return DONE
    from ork.cli.commands.run import go_on
    from ork.status.ids import topmost_run

    # What the run is a part of goes on with it, and nobody else would work on that.
    go_on(look(lambda installation: topmost_run(installation.store, asked.run)), quietly=as_json)
    return DONE
