"""What a refresh needs of a location, wherever it is."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ork.errors import OrkError
from ork.locations.document import Found
from ork.model.workflow import Version

PARSE_SECONDS = 120.0
TAIL_BYTES = 16 * 1024


class LookError(OrkError):
    """Why a location could not be looked into; `output` is the end of what its parser said.

    `is_lasting`: it is so for as long as the digest is the same, and looking again would be of no use.
    """

    code = "ORK707"

    def __init__(
        self, message: str, *, code: str = "ORK707", output: str | None = None, is_lasting: bool = False
    ) -> None:
        super().__init__(message, code=code)
        self.output = output
        self.is_lasting = is_lasting


class Answer(NamedTuple):
    """What `ork-parse` wrote to stdout, and the end of what it wrote to stderr."""

    document: bytes
    said: str


class Place(Protocol):
    """All of it raises LookError."""

    async def digest(self) -> str:
        """What is there now, in a few bytes. Cheap: it is asked for at every refresh."""
        ...

    async def parse(self, digest: str) -> Answer:
        """Runs `ork-parse` there, within limits."""
        ...

    def version(self, found: Found, digest: str) -> Version:
        """The workflow bound to where it was found."""
        ...
