"""`ork token` and `ork audit`: who may do what through the API, and who did what."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from ork.cli.session import json_option, look, now, palette, print_json, store_options
from ork.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from ork.app.installation import Installation
    from ork.model.access import Token

ROLES = ("viewer", "operator", "admin")


@click.group(name="token")
def token_command() -> None:
    """Who may do what through the API: create, list, rotate, revoke.

    \b
    Example:  ork token create --role operator --name ci
    """


@token_command.command(name="create")
@click.option("--role", type=click.Choice(ROLES), default="viewer", show_default=True)
@click.option("--name", default="token", show_default=True, help="Stands in the audit trail beside what it does.")
@click.option("--expires", metavar="AGE", help="After which it opens nothing: 90d, 12h (default: never).")
@json_option
@store_options
def create_command(role: str, name: str, expires: str | None, as_json: bool) -> None:
    """Make a token and print it, once: it is kept nowhere.

    A viewer looks, an operator also starts, stops and decides, an admin also deploys and makes tokens.

    \b
    Example:  export ORK_TOKEN=$(ork token create --role operator --name ci --expires 90d)
    """
    from ork.api.tokens import make_token
    from ork.cli.commands.act import who_asks
    from ork.model.access import Role

    text, token = make_token(name, Role(role), now(), _expiry(expires))

    async def add(installation: Installation) -> None:
        await installation.store.add_token(token)
        detail = json.dumps({"name": name, "role": role})
        await installation.record(who_asks(), "token.create", token.id, detail)

    look(add, creates=True)
    _tell(text, token, as_json)


@token_command.command(name="rotate")
@click.argument("id")
@click.option("--overlap", metavar="AGE", default="1h", show_default=True, help="How long the old one stays valid.")
@click.option("--expires", metavar="AGE", help="After which the new one opens nothing: 90d, 12h (default: never).")
@json_option
@store_options
def rotate_command(id: str, overlap: str, expires: str | None, as_json: bool) -> None:
    """Make another token of the same name and role and print it, once. The old one expires when the overlap is over.

    \b
    Example:  ork token rotate 3f9c01ab --overlap 1d --expires 90d
    """
    from ork.api.tokens import make_token
    from ork.cli.commands.act import who_asks

    until = _after(overlap, "--overlap")

    async def rotate(installation: Installation) -> tuple[str, Token]:
        old = next((token for token in await installation.store.list_tokens() if token.id == id), None)
        if old is None:
            raise _not_in_use(id)
        text, token = make_token(old.name, old.role, now(), _expiry(expires))
        if not await installation.store.rotate_token(id, token, until, now()):
            raise _not_in_use(id)
        await installation.record(who_asks(), "token.rotate", id, json.dumps({"by": token.id}))
        return text, token

    text, token = look(rotate)
    _tell(text, token, as_json)


def _expiry(age: str | None) -> datetime | None:
    moment = None if age is None else _after(age, "--expires")
    if moment is not None and moment <= now():
        raise UsageError(
            f"--expires {age} is no time from now", hint="such as 90d or 12h; without it a token never expires"
        )
    return moment


def _after(age: str, option: str) -> datetime:
    from ork.cli.commands.prune import read_age

    try:
        return now() + read_age(age)
    except OverflowError:
        raise UsageError(f"{option} {age} is too long", hint="such as 90d or 12h") from None


def _tell(text: str, token: Token, as_json: bool) -> None:
    if not as_json:
        print(text)
        return
    from ork.status.shapes import time_json

    shape = {"id": token.id, "name": token.name, "role": token.role.value, "expires_at": time_json(token.expires_at)}
    print_json({**shape, "token": text})


def _not_in_use(id: str) -> NotFoundError:
    return NotFoundError(f"no token `{id}` that is in use", hint="`ork token list` lists them")


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
        from ork.status.shapes import token_json

        print_json({"tokens": [token_json(token) for token in tokens]})
        return
    from ork.cli.tables import table
    from ork.cli.visible import visible
    from ork.status.formatting import ago

    rows = [
        (
            t.id,
            visible(t.name),
            t.role.value,
            ago(t.created_at, now()),
            "never" if t.last_used_at is None else ago(t.last_used_at, now()),
            _state(t),
        )
        for t in tokens
    ]
    palette(sys.stdout).write(sys.stdout, table(("id", "name", "role", "created", "used", ""), rows, less=(3,)))


def _state(token: Token) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if not token.is_live(now()):
        return "expired"
    return "in use" if token.expires_at is None else f"until {token.expires_at:%Y-%m-%d %H:%M} UTC"


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
        raise _not_in_use(id)
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
        from ork.status.shapes import audit_json

        print_json({"entries": [audit_json(entry) for entry in entries]})
        return
    from ork.cli.tables import table
    from ork.cli.visible import visible
    from ork.status.formatting import ago

    rows = [
        (
            ago(e.at, now()),
            visible(e.by),
            e.action,
            visible(e.subject),
            e.token or "",
            visible(e.address or ""),
            visible(e.detail or ""),
        )
        for e in entries
    ]
    palette(sys.stdout).write(sys.stdout, table(("when", "who", "what", "", "token", "from", ""), rows, less=(6, 5, 4)))
