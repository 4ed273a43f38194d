"""`ork alerts`: alert targets, unsent alerts, and test messages."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ork.cli.errors import DONE, FAILED
from ork.cli.session import (
    current_settings,
    json_option,
    local_settings,
    now,
    palette,
    print_json,
    run_short,
    store_options,
)
from ork.errors import NotFoundError, UnreadableError

if TYPE_CHECKING:
    from ork.alerts.channels import Channel
    from ork.app.installation import Installation
    from ork.cli.paint import Line
    from ork.state.reading import StateReader
    from ork.state.records import UnsentAlert

MAX_UNSENT = 100


class AlertTarget(NamedTuple):
    """One entry of `alerts` in ork.yaml, and the workflows that use it."""

    channel: Channel
    workflows: tuple[str, ...]


@click.group(name="alerts", invoke_without_command=True)
@json_option
@store_options
@click.pass_context
def alerts_command(context: click.Context, as_json: bool) -> int | None:
    """List the alert targets in ork.yaml, the workflows that use them, and unsent alerts.

    \b
    Example:  ork alerts
              ork alerts test ops
    """
    if context.invoked_subcommand is not None:
        return None
    settings = current_settings()
    if settings.server is not None:  # the targets are in the server's ork.yaml
        channels: dict[str, Channel] = {}
    else:
        from ork.alerts.channels import read_channels

        channels = read_channels(settings.alerts)
    targets, unsent = run_short(lambda installation: _gather(installation, channels))
    if as_json:
        from ork.status.overview import unsent_json

        print_json({"targets": [_json(each) for each in targets], "unsent": [unsent_json(each) for each in unsent]})
        return DONE
    if targets:
        palette(sys.stdout).write(sys.stdout, _lines(targets))
    elif settings.server is None:
        print("no alert targets: `alerts` in ork.yaml defines them", file=sys.stderr)
    palette(sys.stdout).write(sys.stdout, _unsent_lines(unsent, has_table=bool(targets)))
    return DONE


@alerts_command.command(name="test")
@click.argument("name")
@json_option
@store_options
def test_command(name: str, as_json: bool) -> int:
    """Send a test message to an alert target; exit 1 if it could not be sent.

    \b
    Example:  ork alerts test ops
    """
    from ork.alerts.channels import read_channels

    settings = local_settings("alerts test")
    channels = read_channels(settings.alerts)
    if name not in channels:
        known = ", ".join(sorted(channels)) or "none"
        raise NotFoundError(f"ork.yaml has no alert `{name}`", hint=f"it has: {known}")
    why = _send(channels[name])
    if as_json:
        print_json({"name": name, "sent": why is None, "error": why})
    elif why is None:
        print(f"✓ {name}: a test message was sent by {channels[name].transport}")
    else:
        print(f"✗ {name}: not sent: {why}", file=sys.stderr)
    return DONE if why is None else FAILED


def _send(channel: Channel) -> str | None:
    """Send the message. Returns None, or the reason why it could not be sent."""
    from ork.alerts.not_sent import NotSentError
    from ork.alerts.send import send
    from ork.model.notice import Notice, NoticeKind

    settings = current_settings()
    notice = Notice("0", NoticeKind.TEST, "ork", now(), detail=f"`ork alerts test {channel.name}` sent this.")
    try:
        send(notice, channel, settings.secrets.own_value, settings.outbound)
    except NotSentError as error:
        return str(error)
    return None


async def workflows_by_alert(store: StateReader) -> dict[str, list[str]]:
    """The deployed workflows that use each alert target, whether or not ork.yaml defines it; damaged ones are skipped."""
    named: dict[str, list[str]] = {}
    for entry in await store.list_workflows():
        try:
            version = await store.get_version(entry.version)
        except UnreadableError:
            continue
        for name in version.workflow.alerts if version is not None else ():
            named.setdefault(name, []).append(entry.name)
    return named


async def _gather(
    installation: Installation, channels: dict[str, Channel]
) -> tuple[list[AlertTarget], tuple[UnsentAlert, ...]]:
    store = installation.store
    named = await workflows_by_alert(store) if channels else {}
    targets = [AlertTarget(channel, tuple(named.get(name, ()))) for name, channel in sorted(channels.items())]
    return targets, await store.unsent_alerts(MAX_UNSENT)


def _json(target: AlertTarget) -> dict[str, Any]:
    channel = target.channel
    return {
        "name": channel.name,
        "way": channel.transport,
        "on": sorted(channel.kinds),
        "every_workflow": channel.every_workflow,
        "workflows": list(target.workflows),
    }


def _lines(targets: list[AlertTarget]) -> list[Line]:
    from ork.cli.tables import table
    from ork.model.notice import KINDS

    rows = [
        (
            channel.name,
            channel.transport,
            "everything" if channel.kinds == KINDS else ", ".join(sorted(channel.kinds)),
            "all" if channel.every_workflow else ", ".join(workflows) or "none",
        )
        for channel, workflows in targets
    ]
    return table(("target", "sent by", "on", "workflows"), rows)


def _unsent_lines(unsent: tuple[UnsentAlert, ...], *, has_table: bool) -> list[Line]:
    from ork.alerts.text import title
    from ork.cli.paint import Span, line
    from ork.status.formatting import ago

    lines = [line("")] if unsent and has_table else []
    for each in unsent:
        then = "given up" if each.retry_at is None else f"due again {ago(each.retry_at, now())}"
        words = f" {title(each.notice)}, {ago(each.notice.raised_at, now())}: {each.error} ({then})"
        lines.append(line(Span("✗ not sent", "bad"), words))
    return lines
