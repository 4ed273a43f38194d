"""A command group that imports a command only when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import ClassVar

import click


class LazyGroup(click.Group):
    """`sections` maps commands to their one-line help; `modules` maps commands to modules with another name."""

    sections: ClassVar[dict[str, dict[str, str]]] = {}
    modules: ClassVar[dict[str, str]] = {}

    def list_commands(self, _context: click.Context) -> list[str]:
        return [name for commands in self.sections.values() for name in commands]

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        if not any(name in commands for commands in self.sections.values()):
            return None
        module = import_module(f"ork.cli.commands.{self.modules.get(name, name)}")
        command = getattr(module, f"{name.replace('-', '_')}_command")
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = arguments[0]
        if not name.startswith("-") and name not in self.list_commands(context):
            context.fail(f"no command `{name}`.{self._suggestion(context, name)}")
        return super().resolve_command(context, arguments)

    def _suggestion(self, context: click.Context, name: str) -> str:
        from difflib import get_close_matches

        close = get_close_matches(name, self.list_commands(context), 1)
        return f" Did you mean `{close[0]}`?" if close else ""

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in self.sections.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))
