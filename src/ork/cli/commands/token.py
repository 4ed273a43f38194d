"""`ork token` and `ork audit`: manages API tokens, and lists who changed what."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from ork.cli.session import current_user, json_option, now, palette, print_json, run_short, store_options
from ork.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from ork.app.installation import Installation
    from ork.model.access import Role, Token

ROLES = ("viewer", "operator", "admin", "scheduler")


@click.group(name="token")
def token_command() -> None:
    """Create, list, rotate and revoke API tokens.

    \b
    Example:  ork token create --role operator --name ci
    """


@token_command.command(name="create")
@click.option("--role", type=click.Choice(ROLES), default="viewer", show_default=True)
@click.option("--name", default="token", show_default=True, help="Shown in the audit log.")
@click.option("--expires", metavar="AGE", help="The token is valid for this time: 90d, 12h (default: forever).")
@click.option(
    "--from-file",
    type=click.Path(dir_okay=False),
    help="Use the token in this file, made elsewhere, and print nothing. Repeating it changes nothing.",
)
@json_option
@store_options
def create_command(role: str, name: str, expires: str | None, from_file: str | None, as_json: bool) -> None:
    """Create a token and print it. It is not stored and cannot be shown again.

    A viewer reads; an operator also starts, stops and approves; an admin also deploys and manages tokens. A scheduler on
    another machine keeps its documents in this server with a token of its own role (ORK_OBJECTS=https://…).

    \b
    Example:  export ORK_TOKEN=$(ork token create --role operator --name ci --expires 90d)
    """
    from ork.api.tokens import make_token
    from ork.model.access import Role

    if from_file is not None:
        return _register(from_file, Role(role), name, _expiry(expires))
    text, token = make_token(name, Role(role), now(), _expiry(expires))

    async def add(installation: Installation) -> None:
        await installation.store.add_token(token)
        detail = json.dumps({"name": name, "role": role})
        await installation.record(current_user(), "token.create", token.id, detail)

    run_short(add, creates=True)
    return _print_token(text, token, as_json)


def _register(path: str, role: Role, name: str, expires_at: datetime | None) -> None:
    """Stores the token that the file contains, unless it is stored already."""
    from ork.api.tokens import given_token
    from ork.errors import RefusedError

    token = given_token(path, name, role, now(), expires_at)

    async def add(installation: Installation) -> None:
        if not installation.can_work:
            raise UsageError("--from-file does not work through a server", hint="run it where the store is")
        store = installation.store
        known = await store.find_token(token.digest)
        if known is None:
            try:
                await store.add_token(token)
                detail = json.dumps({"name": name, "role": role.value})
                return await installation.record(current_user(), "token.create", token.id, detail)
            except RefusedError:  # somebody else stored it meanwhile
                known = await store.find_token(token.digest)
        if known is None or not known.is_live(now()) or known.role is not role:
            raise UsageError(
                f"the token in {path} was revoked, has expired or has another role", hint="put a new one into the file"
            )
        return None

    run_short(add, creates=True)


@token_command.command(name="rotate")
@click.argument("id")
@click.option("--overlap", metavar="AGE", default="1h", show_default=True, help="How long the old token stays valid.")
@click.option("--expires", metavar="AGE", help="The new token is valid for this time: 90d, 12h (default: forever).")
@json_option
@store_options
def rotate_command(id: str, overlap: str, expires: str | None, as_json: bool) -> None:
    """Create a new token with the same name and role and print it. The old one expires after the overlap.

    \b
    Example:  ork token rotate 3f9c01ab --overlap 1d --expires 90d
    """
    from ork.api.tokens import make_token

    until = _after(overlap, "--overlap")

    async def rotate(installation: Installation) -> tuple[str, Token]:
        old = next((token for token in await installation.store.list_tokens() if token.id == id), None)
        if old is None:
            raise _not_in_use(id)
        text, token = make_token(old.name, old.role, now(), _expiry(expires))
        if not await installation.store.rotate_token(id, token, until, now()):
            raise _not_in_use(id)
        await installation.record(current_user(), "token.rotate", id, json.dumps({"by": token.id}))
        return text, token

    text, token = run_short(rotate)
    _print_token(text, token, as_json)


def _expiry(age: str | None) -> datetime | None:
    time = None if age is None else _after(age, "--expires")
    if time is not None and time <= now():
        raise UsageError(
            f"--expires {age} is not in the future", hint="such as 90d or 12h; without it a token never expires"
        )
    return time


def _after(age: str, option: str) -> datetime:
    from ork.cli.commands.prune import read_age

    try:
        return now() + read_age(age)
    except OverflowError:
        raise UsageError(f"{option} {age} is too long", hint="such as 90d or 12h") from None


def _print_token(text: str, token: Token, as_json: bool) -> None:
    if not as_json:
        print(text)
        return
    from ork.status.shapes import time_json

    shape = {"id": token.id, "name": token.name, "role": token.role.value, "expires_at": time_json(token.expires_at)}
    print_json({**shape, "token": text})


def _not_in_use(id: str) -> NotFoundError:
    return NotFoundError(f"no valid token `{id}`", hint="`ork token list` lists them")


@token_command.command(name="list")
@json_option
@store_options
def list_command(as_json: bool) -> None:
    """List the tokens, without their values.

    \b
    Example:  ork token list
    """

    async def read(installation: Installation) -> tuple[Token, ...]:
        return await installation.store.list_tokens()

    tokens = run_short(read)
    if as_json:
        from ork.status.shapes import token_json

        print_json({"tokens": [token_json(token) for token in tokens]})
        return
    from ork.cli.paint import visible
    from ork.cli.tables import table
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
    """Revoke a token: it is rejected from now on.

    \b
    Example:  ork token revoke 3f9c01ab
    """

    async def revoke(installation: Installation) -> bool:
        is_done = await installation.store.revoke_token(id, now())
        if is_done:
            await installation.record(current_user(), "token.revoke", id)
        return is_done

    if not run_short(revoke):
        raise _not_in_use(id)
    print(f"token {id} is revoked")


@click.command(name="audit")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@json_option
@store_options
def audit_command(limit: int, as_json: bool) -> None:
    """List who changed what, newest first.

    \b
    Example:  ork audit --limit 20
    """
    entries = run_short(lambda installation: installation.store.list_audit(limit))
    if as_json:
        from ork.status.shapes import audit_json

        print_json({"entries": [audit_json(entry) for entry in entries]})
        return
    from ork.cli.paint import visible
    from ork.cli.tables import table
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
