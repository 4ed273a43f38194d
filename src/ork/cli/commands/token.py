"""`ork token` and `ork audit`: who may do what through the API, and who did what."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from ork.cli.session import json_option, look, now, palette, print_json, store_options
from ork.errors import NotFoundError

if TYPE_CHECKING:
    from ork.app import Installation
    from ork.model.access import Token

ROLES = ("viewer", "operator", "admin")


@click.group(name="token")
def token_command() -> None:
    """Who may do what through the API: create, list, revoke.

    \b
    Example:  ork token create --role operator --name ci
    """


@token_command.command(name="create")
@click.option("--role", type=click.Choice(ROLES), default="viewer", show_default=True)
@click.option("--name", default="token", show_default=True, help="Stands in the audit trail beside what it does.")
@json_option
@store_options
def create_command(role: str, name: str, as_json: bool) -> None:
    """Make a token and print it, once: it is kept nowhere.

    A viewer looks, an operator also starts, stops and decides, an admin also deploys and makes tokens.

    \b
    Example:  export ORK_TOKEN=$(ork token create --role operator --name ci)
    """
    from ork.api.tokens import make_token
    from ork.cli.commands.act import who_asks
    from ork.model.access import Role

    text, token = make_token(name, Role(role), now())

    async def add(installation: Installation) -> None:
        await installation.store.add_token(token)
        detail = json.dumps({"name": name, "role": role})
        await installation.record(who_asks(), "token.create", token.id, detail)

    look(add, creates=True)
    if as_json:
        print_json({"id": token.id, "name": name, "role": role, "token": text})
    else:
        print(text)


@token_command.command(name="list")
@json_option
@store_options
def list_command(as_json: bool) -> None:
    """The tokens there are; not their texts.

    \b
    Example:  ork token list
    """

    async def read(installation: Installation) -> tuple[Token, ...]:
        return await installation.store.list_tokens()

    tokens = look(read)
    if as_json:
        from ork.status.shapes import time_json

        shapes = [
            {"id": t.id, "name": t.name, "role": t.role.value, "created_at": time_json(t.created_at),
             "revoked_at": time_json(t.revoked_at)}
            for t in tokens
        ]  # fmt: skip
        print_json({"tokens": shapes})
        return
    from ork.cli.tables import table
    from ork.cli.visible import visible
    from ork.status.words import ago

    rows = [
        (t.id, visible(t.name), t.role.value, ago(t.created_at, now()), "revoked" if t.revoked_at else "in use")
        for t in tokens
    ]
    palette(sys.stdout).write(sys.stdout, table(("id", "name", "role", "created", ""), rows))


@token_command.command(name="revoke")
@click.argument("id")
@store_options
def revoke_command(id: str) -> None:
    """From now on the token opens nothing.

    \b
    Example:  ork token revoke 3f9c01ab
    """
    from ork.cli.commands.act import who_asks

    async def revoke(installation: Installation) -> bool:
        is_done = await installation.store.revoke_token(id, now())
        if is_done:
            await installation.record(who_asks(), "token.revoke", id)
        return is_done

    if not look(revoke):
        raise NotFoundError(f"no token `{id}` that is in use", hint="`ork token list` lists them")
    print(f"token {id} is revoked")


@click.command(name="audit")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@json_option
@store_options
def audit_command(limit: int, as_json: bool) -> None:
    """Who changed what, newest first.

    \b
    Example:  ork audit --limit 20
    """
    entries = look(lambda installation: installation.store.list_audit(limit))
    if as_json:
        from ork.status.shapes import time_json

        fields = [
            {"id": e.id, "at": time_json(e.at), "by": e.by, "action": e.action, "subject": e.subject,
             "detail": json.loads(e.detail) if e.detail else None}
            for e in entries
        ]  # fmt: skip
        print_json({"entries": fields})
        return
    from ork.cli.tables import table
    from ork.cli.visible import visible
    from ork.status.words import ago

    rows = [(ago(e.at, now()), visible(e.by), e.action, visible(e.subject), visible(e.detail or "")) for e in entries]
    palette(sys.stdout).write(sys.stdout, table(("when", "who", "what", "", ""), rows))
