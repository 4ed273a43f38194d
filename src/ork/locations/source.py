"""The interface of a location's source: a folder or an image."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ork.errors import OrkError
from ork.locations.document import FoundWorkflow
from ork.model.workflow import Version

PARSE_SECONDS = 120.0
TAIL_BYTES = 16 * 1024


class ScanError(OrkError):
    """Why a location could not be read; `output` is the end of the parser's output.

    `is_lasting`: retrying is useless until the digest changes.
    """

    code = "ORK707"

    def __init__(
        self, message: str, *, code: str = "ORK707", output: str | None = None, is_lasting: bool = False
    ) -> None:
        super().__init__(message, code=code)
        self.output = output
        self.is_lasting = is_lasting


class SourceReading(NamedTuple):
    """What `ork-parse` wrote to stdout, and the end of its stderr."""

    document: bytes
    stderr: str


class ParseImage(Protocol):
    async def __call__(self, image: str, /) -> SourceReading:
        """Runs `ork-parse` in the image, given by its digest. ScanError says why it could not."""
        ...


class WorkflowSource(Protocol):
    """All methods raise ScanError."""

    async def digest(self) -> str:
        """A digest of the current content. Cheap: called at every refresh."""
        ...

    async def parse(self, digest: str) -> SourceReading:
        """Run `ork-parse` there, with limits."""
        ...

    def version(self, found: FoundWorkflow, digest: str) -> Version:
        """The workflow bound to its source."""
        ...
