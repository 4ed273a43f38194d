"""`ork approvals`, `approve` and `reject`: tasks that wait for approval."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ork.cli.arguments import run_argument, task_argument
from ork.cli.commands.run_commands import CommandRequest, submit
from ork.cli.errors import DONE
from ork.cli.paint import visible
from ork.cli.session import json_option, now, palette, print_json, run_short, store_options

if TYPE_CHECKING:
    from ork.cli.paint import Line
    from ork.status.approvals import PendingApproval

COMMENT = click.option("--comment", metavar="TEXT", help="Stored with the decision.")
DETACH = click.option("--detach", is_flag=True, help="Only decide; a scheduler continues the run.")


@click.command(name="approve")
@run_argument
@task_argument
@COMMENT
@DETACH
@json_option
@store_options
def approve_command(run: str, task: str | None, comment: str | None, detach: bool, as_json: bool) -> int:
    """Approve a task that waits for approval. The name of the approver is recorded.

    If no scheduler is running, this process continues the run and shows its progress.

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
    """Reject a task that waits for approval: it fails, and tasks that depend on it are skipped.

    \b
    Example:  ork reject 7f3k release --comment "not before Monday"
    """
    return _decide("reject", run, task, comment, detach, as_json)


@click.command(name="approvals")
@json_option
@store_options
def approvals_command(as_json: bool) -> int:
    """List the tasks that wait for approval: who may approve, since when, and until when.

    \b
    Example:  ork approvals
    """
    from ork.status.approvals import approval_json, list_pending_approvals

    pending = run_short(lambda installation: list_pending_approvals(installation.store))
    if as_json:
        print_json({"approvals": [approval_json(each) for each in pending]})
    elif pending:
        palette(sys.stdout).write(sys.stdout, _lines(pending))
    else:
        print("nothing waits for approval", file=sys.stderr)
    return DONE


def _lines(pending: list[PendingApproval]) -> list[Line]:
    from ork.cli.tables import table
    from ork.status.formatting import ago

    rows = [
        (
            each.short,
            each.workflow,
            str(each.task),
            each.whom,
            ago(each.since, now()) if each.since is not None else "–",
            "never" if each.due is None else ago(each.due, now()),
            visible(each.message),
        )
        for each in pending
    ]
    return table(("run", "workflow", "task", "for", "waits since", "fails", "question"), rows)


def _decide(kind: str, run: str, task: str | None, comment: str | None, detach: bool, as_json: bool) -> int:
    from ork.status.approval_targets import waiting_task

    submitted = submit(run, CommandRequest(kind, task, comment=comment, choose=waiting_task), as_json, detach=detach)
    if detach or submitted.is_served:
        return DONE
    from ork.cli.commands.run import continue_run
    from ork.status.ids import topmost_run

    # The outermost run is continued, because no scheduler works on it either.
    continue_run(run_short(lambda installation: topmost_run(installation.store, submitted.run)), quietly=as_json)
    return DONE
