"""`ork why`: the question people ask most."""

from __future__ import annotations

import sys

import click

from ork.cli.naming import run_argument, task_argument
from ork.cli.session import json_option, look, now, palette, print_json, store_options


@click.command(name="why")
@run_argument
@task_argument
@json_option
@store_options
def why_command(run: str, task: str | None, as_json: bool) -> None:
    """Why a run or a task is (not) running, what happens next and when.

    \b
    Example:  ork why @last transform
    """
    from ork.status.ids import parse_target

    target = parse_target(run, task)
    title, sentences = look(lambda installation: installation.explain(target, now()))
    if as_json:
        print_json({"subject": title, "why": [sentence.strip() for sentence in sentences]})
        return
    from ork.cli.paint import line
    from ork.cli.visible import visible

    on = palette(sys.stdout)
    lines = on.hang(line(f"{title}: ", visible(sentences[0])))
    for sentence in sentences[1:]:
        text = visible(sentence)
        words = text.lstrip()
        lines += on.hang(line(" " * (2 + len(text) - len(words)), words))
    on.write(sys.stdout, lines)
