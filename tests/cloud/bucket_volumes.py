"""Buckets as a fake Cloud Run mounts them: a folder of this machine, or a copy of what a server of Google Cloud Storage has."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen


class Bucket(Protocol):
    @contextmanager
    def mounted(self, prefix: str, *, read_only: bool) -> Iterator[Path]:
        """A folder with the objects below the prefix. What is written there is in the bucket afterwards, at the latest."""
        ...


class FolderBucket:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def mounted(self, prefix: str, *, read_only: bool) -> Iterator[Path]:
        folder = self._folder / prefix
        folder.mkdir(parents=True, exist_ok=True)
        yield folder


class GcsBucket:
    """A bucket of a server that speaks the JSON API, without credentials. A mount finds files by name, so it sees what a late listing
    does not show: `keys`, if given, returns the keys of all objects."""

    def __init__(self, endpoint: str, bucket: str, keys: Callable[[], list[str]] | None = None) -> None:
        self._endpoint, self._bucket = endpoint, bucket
        self._all_keys = keys

    @contextmanager
    def mounted(self, prefix: str, *, read_only: bool) -> Iterator[Path]:
        folder = Path(tempfile.mkdtemp(prefix="ork-gcs-"))
        folder.chmod(0o777)
        before = {}
        for key in self._keys(f"{prefix}/"):
            place = folder / key.removeprefix(f"{prefix}/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(self._get(key))
            before[place] = place.read_bytes()
        try:
            yield folder
            for place in folder.rglob("*") if not read_only else ():
                if place.is_file() and before.get(place) != place.read_bytes():
                    self._put(f"{prefix}/{place.relative_to(folder)}", place.read_bytes())
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _keys(self, prefix: str) -> list[str]:
        if self._all_keys is not None:
            return [key for key in self._all_keys() if key.startswith(prefix)]
        found, token = [], ""
        while True:
            query = urlencode({"prefix": prefix, **({"pageToken": token} if token else {})})
            page = json.loads(self._call(Request(f"{self._endpoint}/storage/v1/b/{self._bucket}/o?{query}")))
            found += [item["name"] for item in page.get("items", [])]
            token = page.get("nextPageToken", "")
            if not token:
                return found

    def _get(self, key: str) -> bytes:
        return self._call(Request(f"{self._endpoint}/storage/v1/b/{self._bucket}/o/{quote(key, safe='')}?alt=media"))

    def _put(self, key: str, data: bytes) -> None:
        query = urlencode({"uploadType": "media", "name": key})
        url = f"{self._endpoint}/upload/storage/v1/b/{self._bucket}/o?{query}"
        self._call(Request(url, data, {"Content-Type": "application/octet-stream"}, method="POST"))

    def _call(self, request: Request) -> bytes:
        with urlopen(request, timeout=30) as answer:
            data: bytes = answer.read()
            return data
