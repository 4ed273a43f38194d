"""`ork why`: the question people ask most."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ork.cli.session import json_option, look, now, print_json, store_options

if TYPE_CHECKING:
    from ork.app import Installation


@click.command(name="why")
@click.argument("run")
@click.argument("task", required=False)
@json_option
@store_options
def why_command(run: str, task: str | None, as_json: bool) -> None:
    """Why a run or a task is (not) running, what happens next and when.

    \b
    Example:  ork why @last transform
    """
    title, sentences = look(lambda installation: _answer(installation, run, task))
    if as_json:
        print_json({"subject": title, "why": [sentence.strip() for sentence in sentences]})
        return
    from ork.cli.visible import visible

    print(f"{title}: {visible(sentences[0])}")
    for sentence in sentences[1:]:
        print(f"  {visible(sentence)}")


async def _answer(installation: Installation, run: str, task: str | None) -> tuple[str, list[str]]:
    from ork.status.gather import gather
    from ork.status.ids import parse_target, pick_tasks, resolve_run
    from ork.status.why import why_instances, why_run, why_task

    target = parse_target(run, task)
    settings = installation.settings
    found = await resolve_run(installation.store, target.run)
    snapshot = replace(
        await gather(installation.store, installation.objects, found, now()),
        heartbeat_seconds=settings.heartbeat_seconds,
        stale_seconds=settings.stale_seconds,
        start_limit_seconds=settings.start_limit_seconds,
    )
    view = snapshot.view
    if target.task is None or not view.tasks:
        return f"run {view.short}", why_run(snapshot)
    key = pick_tasks(view.tasks, target)[0]  # the whole task comes before its instances
    sentences = why_task(snapshot, view.tasks[key])
    if key.index is None:
        sentences += why_instances(snapshot, key.name)
    return f"{view.short}/{key}", sentences
