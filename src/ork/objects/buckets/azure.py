"""Azure Blob Storage, with the standard library: signed with the account's key, with a SAS, or as a managed identity."""

from __future__ import annotations

import time

from ork.errors import ObjectsError
from ork.objects.buckets.bucket import BYTES, Listed
from ork.objects.buckets.environment import variables
from ork.objects.buckets.requests import Request, Service, escaped, fetch
from ork.objects.buckets.rest import RestBucket, each_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ork.objects.buckets.address import BucketAddress
    from ork.objects.buckets.requests import Answer

_VERSION = "2021-12-02"
_METADATA = "http://169.254.169.254/metadata/identity/oauth2/token"
_STORAGE = "https://storage.azure.com/"
_SIGNED_HEADERS = (
    "content-encoding", "content-language", "content-length", "content-md5", "content-type", "date",
    "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range",
)  # fmt: skip
_EARLY_SECONDS = 300.0


class AzureBucket(RestBucket):
    def __init__(self, address: BucketAddress) -> None:
        self.name = address.bucket
        self._variable = variables("az")
        self._account = address.account or ""
        self._top = f"/{escaped(address.bucket, '')}"
        self._service = Service(address.endpoint or f"https://{self._account}.blob.core.windows.net", self._sign)
        self._token: tuple[str, float] | None = None

    def list(self, prefix: str) -> list[Listed]:
        from xml.etree.ElementTree import fromstring

        found: list[Listed] = []
        query = {"restype": "container", "comp": "list", "prefix": prefix}
        while True:
            answer = self._service.ask(Request("GET", self._top, query))
            self._check(answer, "list objects")
            page = fromstring(answer.body)
            found += [
                Listed(
                    each.findtext("Name") or "",
                    int(each.findtext("Properties/Content-Length") or 0),
                    each.findtext("Properties/Etag") or "",
                )
                for each in page.iter("Blob")
            ]
            marker = page.findtext("NextMarker")
            if not marker:
                return sorted(found)
            query["marker"] = marker

    def delete_many(self, keys: Sequence[str]) -> None:
        each_of(self._delete, keys)

    def _delete(self, key: str) -> None:
        self._is_there(self._service.ask(Request("DELETE", self._path(key))), f"delete {key}")

    def _write(self, key: str, data: bytes, content_type: str = BYTES, *, if_absent: bool) -> Answer:
        headers = {"Content-Type": content_type, "x-ms-blob-type": "BlockBlob"}
        if if_absent:
            headers["If-None-Match"] = "*"
        return self._service.ask(Request("PUT", self._path(key), None, headers, data))

    def _path(self, key: str) -> str:
        return f"{self._top}/{escaped(key)}"

    def _error_code(self, answer: Answer) -> str:
        return answer.headers.get("x-ms-error-code", "")

    def _sign(self, request: Request) -> None:
        request.headers["x-ms-version"] = _VERSION
        request.headers["x-ms-date"] = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
        key = self._variable("AZURE_STORAGE_ACCOUNT_KEY") or self._variable("AZURE_STORAGE_ACCESS_KEY")
        sas = self._variable("AZURE_STORAGE_SAS_TOKEN") or self._variable("AZURE_STORAGE_SAS_KEY")
        if key:
            request.headers["Authorization"] = f"SharedKey {self._account}:{self._signature(request, key)}"
        elif sas:
            from urllib.parse import parse_qsl

            request.query.update(parse_qsl(sas.lstrip("?")))
        else:
            request.headers["Authorization"] = f"Bearer {self._identity_token()}"

    def _signature(self, request: Request, key: str) -> str:
        from base64 import b64decode, b64encode
        from hmac import digest

        headers = {name.lower(): value for name, value in request.headers.items()}
        if request.body:
            headers["content-length"] = str(len(request.body))
        own = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers) if name.startswith("x-ms-"))
        resource = f"/{self._account}{self._service.path}{request.path}"
        resource += "".join(f"\n{name.lower()}:{value}" for name, value in sorted(request.query.items()))
        usual = "".join(f"{headers.get(name, '')}\n" for name in _SIGNED_HEADERS)
        text = f"{request.method}\n{usual}{own}{resource}"
        return b64encode(digest(b64decode(key), text.encode(), "sha256")).decode()

    def _identity_token(self) -> str:
        if self._token is None or time.time() >= self._token[1] - _EARLY_SECONDS:
            self._token = _managed_identity(self._variable)
        return self._token[0]


def _managed_identity(variable: Callable[[str], str]) -> tuple[str, float]:
    """A token, and when it expires. From the endpoint that App Service and Container Apps name, else from the machine's."""
    import json

    endpoint, secret = variable("IDENTITY_ENDPOINT"), variable("IDENTITY_HEADER")
    client = variable("AZURE_CLIENT_ID")
    which = f"&client_id={client}" if client else ""
    try:
        if endpoint and secret:
            url = f"{endpoint}?api-version=2019-08-01&resource={_STORAGE}{which}"
            answer = json.loads(fetch(url, {"X-IDENTITY-HEADER": secret}))
        else:
            url = f"{_METADATA}?api-version=2018-02-01&resource={_STORAGE}{which}"
            answer = json.loads(fetch(url, {"Metadata": "true"}))
    except ObjectsError as problem:
        raise ObjectsError(
            f"no Azure credentials: {problem.message}",
            hint="set AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN, or run with a managed identity",
        ) from problem
    return str(answer["access_token"]), float(answer["expires_on"])
