"""`ork help`, `ork explain`, `ork schema` and `ork completion`: commands that need no store."""

from __future__ import annotations

import json

import click

from ork.cli.session import json_option, print_json
from ork.errors import UsageError


@click.command(name="help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def help_command(context: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of a command, as `ork COMMAND --help` does.

    \b
    Example:  ork help run
    """
    shown = context.find_root()
    for word in words:
        if not isinstance(shown.command, click.Group):
            raise UsageError(f"`{shown.command_path}` has no subcommands")
        _, command, _ = shown.command.resolve_command(shown, [word])
        assert command is not None
        shown = click.Context(command, info_name=word, parent=shown)
    print(shown.get_help())


@click.command(name="explain")
@click.argument("code")
@json_option
def explain_command(code: str, as_json: bool) -> None:
    """Explain an error code, with a wrong and a right example.

    \b
    Example:  ork explain ORK201
    """
    from ork.definition.codes import find

    found = find(code)
    if as_json:
        print_json(found._asdict())
    else:
        print(found.text())


@click.command(name="schema")
@click.argument("file", type=click.Choice(["workflow", "project", "workers", "locations"]), default="workflow")
@json_option
def schema_command(file: str, as_json: bool) -> None:  # noqa: ARG001 - it is JSON either way
    """Print the JSON Schema of workflow files, ork.yaml (`project`), workers.yaml or locations.yaml, for editors.

    \b
    Example:  ork schema > workflow.schema.json
    """
    from ork.definition import schema

    made = {
        "workflow": schema.workflow_schema,
        "project": schema.project_schema,
        "workers": schema.workers_schema,
        "locations": schema.locations_schema,
    }
    print(json.dumps(made[file](), indent=2))


@click.command(name="completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@json_option
def completion_command(shell: str, as_json: bool) -> None:
    """Print a completion script for your shell.

    \b
    Example:  ork completion bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class

    from ork.cli.main import ork

    script = get_completion_class(shell)
    assert script is not None
    source = script(ork, {}, "ork", "_ORK_COMPLETE").source()
    if as_json:
        print_json({"shell": shell, "script": source})
    else:
        print(source)
