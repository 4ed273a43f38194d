"""Tickets: signed texts that work once, within a minute. One opens the web UI, or downloads one log."""

from __future__ import annotations

import re
import secrets
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from ork.api.signing import KeyStore, StoreKeySigner

TICKET_SECONDS = 60
UI = "ui"
"""The purpose of a ticket that opens the web UI."""
# A used ticket is remembered this long after its end, because the clocks of servers on one store may differ.
REMEMBERED = timedelta(hours=1)
# The random part comes first: failed sign-ins are counted by the beginning of a text.
_TICKET = re.compile(
    r"(?P<random>[\w-]{22})\.(?P<ends>\d{1,12})\.(?P<digest>[0-9a-f]{64})\.(?P<signature>[\w-]{43})", re.ASCII
)


class TicketStore(KeyStore, Protocol):
    async def use_once(self, key: str, until: datetime, now: datetime) -> bool: ...


class Ticket(NamedTuple):
    """A ticket whose signature is valid. `digest` is that of the token that it was made with."""

    digest: str
    ends: int
    random: str

    def has_ended(self, now: datetime) -> bool:
        return now.timestamp() >= self.ends


class Tickets:
    def __init__(self, store: TicketStore) -> None:
        self._store = store
        self._signer = StoreKeySigner(store, "ticket")

    async def make(self, purpose: str, digest: str, now: datetime) -> str:
        """The text of a new ticket. Nothing is stored until it is used."""
        random, ends = secrets.token_urlsafe(16), int(now.timestamp()) + TICKET_SECONDS
        signature = await self._signer.sign(purpose, random, ends, digest)
        return f"{random}.{ends}.{digest}.{signature}"

    async def read(self, text: str, purpose: str) -> Ticket | None:
        """The ticket, if it was made for this purpose; it may have ended, or be used."""
        found = _TICKET.fullmatch(text)
        if found is None:
            return None
        random, ends, digest = found["random"], int(found["ends"]), found["digest"]
        is_signed = await self._signer.is_signed(found["signature"], purpose, random, ends, digest)
        return Ticket(digest, ends, random) if is_signed else None

    async def use(self, ticket: Ticket, now: datetime) -> bool:
        """Marks the ticket as used. False if it was used before, at any server."""
        until = datetime.fromtimestamp(ticket.ends, now.tzinfo) + REMEMBERED
        return await self._store.use_once(f"ticket {ticket.random}", until, now)
