"""`ork graph`: draws a workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ork.cli.arguments import complete_file_or_workflow
from ork.cli.definitions import default_file, is_file_name, read_versions
from ork.cli.session import json_option, print_json, run_short, settings_of, store_options

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.model.workflow import CompiledWorkflow


@click.command(name="graph")
@click.argument("workflow", required=False, metavar="[FILE|NAME]", shell_complete=complete_file_or_workflow)
@click.argument("name", required=False)
@click.option("--format", "form", type=click.Choice(["text", "mermaid", "svg"]), default="text", show_default=True)
@json_option
@store_options
def graph_command(workflow: str | None, name: str | None, form: str, as_json: bool) -> None:
    """Draw a workflow's graph as text, Mermaid or SVG. NAME selects a workflow of a Python file.

    \b
    Example:  ork graph etl.yaml --format svg > etl.svg
    """
    from ork.compile.drawing import draw_mermaid, draw_svg, draw_text

    drawn = _workflow(workflow, name)
    if as_json:
        tasks = [
            {"name": task.name, "executor": task.executor, "depends_on": list(task.depends_on)} for task in drawn.tasks
        ]
        print_json({"workflow": drawn.name, "tasks": tasks})
        return
    match form:
        case "mermaid":
            print(draw_mermaid(drawn))
        case "svg":
            print(draw_svg(drawn))
        case _:
            print("\n".join(draw_text(drawn)))


def _workflow(named: str | None, chosen: str | None) -> CompiledWorkflow:
    named = named or default_file()
    if is_file_name(named):
        return read_versions(named, settings_of(named), chosen)[0].workflow

    async def read(installation: Installation) -> CompiledWorkflow:
        from ork.cli.new_run import known_version

        return (await known_version(installation, named)).workflow

    return run_short(read)
