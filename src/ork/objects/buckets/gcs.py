"""Google Cloud Storage by its JSON API, with the standard library."""

from __future__ import annotations

import os
import time

from ork.errors import ObjectsError
from ork.objects.buckets.bucket import BYTES, Listed
from ork.objects.buckets.environment import variables
from ork.objects.buckets.requests import Request, Service, escaped, fetch
from ork.objects.buckets.rest import RestBucket, each_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ork.objects.buckets.address import BucketAddress
    from ork.objects.buckets.requests import Answer

HOST = "https://storage.googleapis.com"
_OBJECTS = "/storage/v1/b/{}/o"
_UPLOADS = "/upload/storage/v1/b/{}/o"
_METADATA = "/computeMetadata/v1/instance/service-accounts/default/token"
_EARLY_SECONDS = 120.0  # a token is renewed this long before it expires


class GcsBucket(RestBucket):
    _media = {"alt": "media"}  # noqa: RUF012

    def __init__(self, address: BucketAddress) -> None:
        self.name = address.bucket
        self._token = None if address.is_emulator() else AccessToken()
        self._service = Service(address.endpoint or HOST, self._sign)
        self._objects = _OBJECTS.format(escaped(address.bucket, ""))
        self._uploads = _UPLOADS.format(escaped(address.bucket, ""))

    def list(self, prefix: str) -> list[Listed]:
        found: list[Listed] = []
        query = {"prefix": prefix, "fields": "items(name,size,generation),nextPageToken"}
        while True:
            answer = self._service.ask(Request("GET", self._objects, query))
            self._check(answer, "list objects")
            page = _json(answer)
            found += [Listed(each["name"], int(each["size"]), each["generation"]) for each in page.get("items", ())]
            if not page.get("nextPageToken"):
                return sorted(found)
            query["pageToken"] = page["nextPageToken"]

    def head(self, key: str) -> int | None:
        answer = self._service.ask(Request("GET", self._path(key), {"fields": "size"}))
        return int(_json(answer)["size"]) if self._is_there(answer, f"read {key}") else None

    def delete_many(self, keys: Sequence[str]) -> None:
        each_of(self._delete, keys)

    def _delete(self, key: str) -> None:
        self._is_there(self._service.ask(Request("DELETE", self._path(key))), f"delete {key}")

    def _write(self, key: str, data: bytes, content_type: str = BYTES, *, if_absent: bool) -> Answer:
        query = {"uploadType": "media", "name": key, "fields": "generation"}
        if if_absent:
            query["ifGenerationMatch"] = "0"
        headers = {"Content-Type": content_type}
        return self._service.ask(Request("POST", self._uploads, query, headers, data))

    def _path(self, key: str) -> str:
        return f"{self._objects}/{escaped(key, '')}"

    def _sign(self, request: Request) -> None:
        if self._token is not None:
            request.headers["Authorization"] = f"Bearer {self._token.value()}"

    def _error_code(self, answer: Answer) -> str:
        try:
            return str(_json(answer)["error"]["message"])[:200]
        except (ValueError, KeyError, TypeError):
            return answer.body[:200].decode("utf-8", "replace").strip()


def _json(answer: Answer) -> Any:
    import json

    return json.loads(answer.body)


class AccessToken:
    """An access token of this process's own identity, renewed before it expires."""

    def __init__(self) -> None:
        self._variable = variables("gs")
        self._value = ""
        self._renew_at = 0.0

    def value(self) -> str:
        if time.monotonic() >= self._renew_at:
            answer = self._fetch()
            self._value = str(answer["access_token"])
            self._renew_at = time.monotonic() + max(1.0, float(answer.get("expires_in", 0)) - _EARLY_SECONDS)
        return self._value

    def _fetch(self) -> Any:
        import json

        credentials = _credentials_file(self._variable)
        if credentials is not None:
            return json.loads(_from_user(*credentials))
        host = self._variable("GCE_METADATA_HOST") or "metadata.google.internal"
        try:
            return json.loads(fetch(f"http://{host}{_METADATA}", {"Metadata-Flavor": "Google"}))
        except ObjectsError as problem:
            raise ObjectsError(
                f"no Google credentials: {problem.message}",
                hint="run on Google Cloud with a service account, or: gcloud auth application-default login",
            ) from problem


def _credentials_file(variable: Callable[[str], str]) -> tuple[str, dict[str, Any]] | None:
    """The application default credentials of a user, and their path."""
    import json

    named = variable("GOOGLE_APPLICATION_CREDENTIALS")
    folder = variable("CLOUDSDK_CONFIG") or os.path.expanduser("~/.config/gcloud")
    path = named or f"{folder}/application_default_credentials.json"
    try:
        with open(path, encoding="utf-8") as file:
            return path, json.load(file)
    except FileNotFoundError:
        if named:
            raise ObjectsError(f"GOOGLE_APPLICATION_CREDENTIALS names {path}, which does not exist") from None
        return None
    except (OSError, ValueError) as error:
        raise ObjectsError(f"cannot read the Google credentials in {path}: {error}") from error


def _from_user(path: str, credentials: dict[str, Any]) -> bytes:
    from urllib.parse import urlencode

    kind = credentials.get("type")
    if kind != "authorized_user":
        raise ObjectsError(
            f"workers cannot use the Google credentials in {path}: they are of the type {kind!r}, which needs a signature "
            "that Python's standard library cannot make",
            hint="give workers the identity of their machine (a service account attached to it), or: "
            "gcloud auth application-default login",
        )
    names = ("client_id", "client_secret", "refresh_token")
    fields = {"grant_type": "refresh_token", **{name: credentials[name] for name in names}}
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    url = credentials.get("token_uri") or "https://oauth2.googleapis.com/token"
    return fetch(url, headers, method="POST", body=urlencode(fields).encode())
