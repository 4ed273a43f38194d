"""A substitute for an object store that is not the installation's: commands can read state, and explain why they cannot read
objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ork.errors import ObjectsError
from ork.objects.keyed import KeyedDocuments

if TYPE_CHECKING:
    import builtins


class ObjectsElsewhere(KeyedDocuments):
    """Every verb raises an ObjectsError with the same explanation."""

    kind = "elsewhere"
    answers_at_once = True

    def __init__(self, url: str, problem: str, hint: str | None) -> None:
        self.url = url
        self._problem, self._hint = problem, hint

    def _refuse(self) -> NoReturn:
        raise ObjectsError(self._problem, hint=self._hint)

    def put(self, key: str, data: bytes) -> None:  # noqa: ARG002
        self._refuse()

    def put_if_absent(self, key: str, data: bytes) -> bool:  # noqa: ARG002
        self._refuse()

    def get(self, key: str, *, limit: int | None = None) -> bytes | None:  # noqa: ARG002
        self._refuse()

    def read(self, key: str, start: int = 0, size: int | None = None) -> bytes:  # noqa: ARG002
        self._refuse()

    def size(self, key: str) -> int | None:  # noqa: ARG002
        self._refuse()

    def list(self, prefix: str) -> builtins.list[str]:  # noqa: ARG002
        self._refuse()

    def delete(self, prefix: str) -> None:  # noqa: ARG002
        self._refuse()
