"""All three services by obstore, which the extra `cloud` installs. For processes that do not fork: its threads do not survive that."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from ork.errors import DocumentError, ObjectsError
from ork.objects.buckets.bucket import BYTES, Listed
from ork.objects.buckets.environment import variables
from ork.objects.buckets.requests import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, REQUEST_SECONDS, RETRY_SECONDS
from ork.objects.buckets.rest import refusal

if TYPE_CHECKING:
    from ork.objects.buckets.address import BucketAddress

T = TypeVar("T")
_PAGE = 1000
_ERROR_CODE = re.compile(r"<Code>([A-Za-z]+)</Code>")


class ObstoreBucket:
    """ObjectsError with a hint if obstore is not installed."""

    def __init__(self, address: BucketAddress) -> None:
        try:
            import obstore
        except ImportError as error:
            raise ObjectsError(
                f"{address.scheme}:// needs the package obstore, which is not installed: {error}",
                hint="pip install 'ork-orchestrator[cloud]'",
            ) from error
        self._obstore = obstore
        self._problems = (obstore.exceptions.BaseError, OSError, ValueError)
        self.name = address.bucket
        self._store = _store_of(address)

    def put(self, key: str, data: bytes, content_type: str = BYTES) -> None:
        attributes = {"Content-Type": content_type}
        self._try(f"write {key}", lambda: self._obstore.put(self._store, key, data, attributes=attributes))

    def put_if_absent(self, key: str, data: bytes) -> bool:
        def create() -> bool:
            try:
                self._obstore.put(self._store, key, data, mode="create")
            except self._obstore.exceptions.AlreadyExistsError:
                return False
            return True

        return self._try(f"write {key}", create)

    def get(self, key: str, *, limit: int | None = None) -> bytes | None:
        def read() -> bytes | None:
            try:
                found = self._obstore.get(self._store, key)
            except FileNotFoundError as error:
                _raise_if_bucket_is_missing(error)
                return None
            size = found.meta["size"]
            if limit is not None and size > limit:
                raise DocumentError(f"{key} has {size} bytes, more than the {limit} allowed")
            return bytes(found.bytes())

        return self._try(f"read {key}", read)

    def get_range(self, key: str, start: int, size: int | None) -> bytes:
        there = self.head(key)
        if there is None or start >= there or (size is not None and size <= 0):
            return b""
        end = there if size is None else min(there, start + size)
        return self._try(f"read {key}", lambda: bytes(self._obstore.get_range(self._store, key, start=start, end=end)))

    def head(self, key: str) -> int | None:
        def look() -> int | None:
            try:
                return int(self._obstore.head(self._store, key)["size"])
            except FileNotFoundError:
                return None

        return self._try(f"read {key}", look)

    def list(self, prefix: str) -> list[Listed]:
        """obstore lists whole parts of keys: what the last part begins with is compared here."""
        folder = prefix.rpartition("/")[0]

        def pages() -> list[Listed]:
            found = [
                each for page in self._obstore.list(self._store, folder or None, chunk_size=_PAGE) for each in page
            ]
            return sorted(_listed(each) for each in found if each["path"].startswith(prefix))

        return self._try("list objects", pages)

    def delete_many(self, keys: Sequence[str]) -> None:
        if not keys:
            return

        def delete() -> None:
            try:
                self._obstore.delete(self._store, keys)
            except FileNotFoundError:
                if len(keys) > 1:  # one of them: nobody knows which others were deleted before it was missed
                    for key in keys:
                        self.delete_many([key])

        self._try("delete objects", delete)

    def _try(self, what: str, action: Callable[[], T]) -> T:
        try:
            return action()
        except ObjectsError:
            raise
        except self._problems as error:
            raise self._explained(what, error) from error

    def _explained(self, what: str, error: Exception) -> ObjectsError:
        text = str(error)
        found = _ERROR_CODE.search(text)
        code = found[1] if found else ""
        exceptions = self._obstore.exceptions
        if isinstance(error, FileNotFoundError):
            return refusal(self.name, what, 404, code)
        if isinstance(error, (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)):
            return refusal(self.name, what, 403, code)
        first = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
        return ObjectsError(
            f"cannot {what} in the bucket {self.name}: {first[:500]}",
            hint="check the network, the endpoint and the credentials; work goes on when it answers",
        )


def _raise_if_bucket_is_missing(error: FileNotFoundError) -> None:
    if "NoSuchBucket" in str(error) or "ContainerNotFound" in str(error):
        raise error


def _listed(found: Any) -> Listed:
    return Listed(
        found["path"], found["size"], str(found.get("e_tag") or found.get("version") or found["last_modified"])
    )


def _store_of(address: BucketAddress) -> Any:
    from obstore.store import AzureStore, GCSStore, S3Store

    options: dict[str, Any] = {
        "client_options": {
            "timeout": timedelta(seconds=6 * REQUEST_SECONDS),  # of a whole request, also of a large one
            "connect_timeout": timedelta(seconds=REQUEST_SECONDS),
            "allow_http": (address.endpoint or "").startswith("http://"),
        },
        "retry_config": {
            "max_retries": 8,
            "retry_timeout": timedelta(seconds=RETRY_SECONDS),
            "backoff": {
                "init_backoff": timedelta(seconds=FIRST_PAUSE_SECONDS),
                "max_backoff": timedelta(seconds=LONGEST_PAUSE_SECONDS),
                "base": 2,
            },
        },
    }
    if address.endpoint:
        options["endpoint"] = address.endpoint
    if address.scheme == "gs":
        return GCSStore(address.bucket, **options)
    if address.scheme == "az":
        return AzureStore(address.bucket, account_name=address.account, **options)
    if address.region:
        options["region"] = address.region
    is_anonymous = address.is_emulator() and not variables("s3")("AWS_ACCESS_KEY_ID")
    return S3Store(address.bucket, skip_signature=is_anonymous, **options)
