"""`ork why`: explains why a run or task is (not) running."""

from __future__ import annotations

import sys

import click

from ork.cli.arguments import run_argument, task_argument
from ork.cli.session import json_option, now, palette, print_json, run_short, store_options


@click.command(name="why")
@run_argument
@task_argument
@json_option
@store_options
def why_command(run: str, task: str | None, as_json: bool) -> None:
    """Explain why a run or task is (not) running, what happens next and when.

    \b
    Example:  ork why @last transform
    """
    from ork.status.ids import parse_target

    target = parse_target(run, task)
    answer = run_short(lambda installation: installation.explain(target, now()))
    if as_json:
        from ork.status.explain import why_json

        print_json(why_json(answer))
        return
    title, sentences = answer.subject, answer.sentences
    from ork.cli.paint import line, visible

    on = palette(sys.stdout)
    lines = on.hang(line(f"{title}: ", visible(sentences[0])))
    for sentence in sentences[1:]:
        text = visible(sentence)
        words = text.lstrip()
        lines += on.hang(line(" " * (2 + len(text) - len(words)), words))
    on.write(sys.stdout, lines)
