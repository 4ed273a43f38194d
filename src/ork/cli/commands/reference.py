"""`ork explain`, `ork schema` and `ork completion`: what can be told without a store."""

from __future__ import annotations

import json

import click

from ork.errors import NotFoundError


@click.command(name="explain")
@click.argument("code")
def explain_command(code: str) -> None:
    """What an error code means, with a wrong and a right example.

    \b
    Example:  ork explain ORK201
    """
    from ork.definition.codes import explain

    try:
        print(explain(code.upper()))
    except KeyError:
        raise NotFoundError(f"no code `{code}`", hint="codes look like ORK201") from None


@click.command(name="schema")
@click.argument("file", type=click.Choice(["workflow", "project"]), default="workflow")
def schema_command(file: str) -> None:
    """JSON Schema of the YAML files, for editors (workflow files, or ork.yaml with `project`).

    \b
    Example:  ork schema > workflow.schema.json
    """
    from ork.definition.schema import project_schema, workflow_schema

    print(json.dumps(workflow_schema() if file == "workflow" else project_schema(), indent=2))


@click.command(name="completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """A completion script for your shell.

    \b
    Example:  ork completion bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class

    from ork.cli.main import ork

    script = get_completion_class(shell)
    assert script is not None
    print(script(ork, {}, "ork", "_ORK_COMPLETE").source())
