"""Stands in for an object store that is not the installation's: state can be read, and what needs objects says why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ork.errors import ObjectsError
from ork.objects.local import LocalObjects
from ork.objects.opening import root_of_url

if TYPE_CHECKING:
    import builtins


class ObjectsElsewhere(LocalObjects):
    """Every verb is an ObjectsError with the same explanation."""

    def __init__(self, url: str, problem: str, hint: str | None) -> None:
        super().__init__(root_of_url(url))
        self._problem, self._hint = problem, hint

    def _refuse(self) -> NoReturn:
        raise ObjectsError(self._problem, hint=self._hint)

    def path(self, key: str) -> str:  # noqa: ARG002
        self._refuse()

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
