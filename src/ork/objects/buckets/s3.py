"""S3, and services with the same protocol, with the standard library."""

from __future__ import annotations

from ork.objects.buckets.bucket import BYTES, Listed
from ork.objects.buckets.requests import Request, Service, escaped
from ork.objects.buckets.rest import RestBucket
from ork.objects.buckets.s3_signing import S3Signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from xml.etree.ElementTree import Element

    from ork.objects.buckets.address import BucketAddress
    from ork.objects.buckets.requests import Answer

_MOST_DELETES = 1000
_CONFLICT = frozenset({409})  # another conditional write of this key is under way


class S3Bucket(RestBucket):
    def __init__(self, address: BucketAddress) -> None:
        self.name = address.bucket
        self._signature = S3Signature(address.region, is_anonymous_without_keys=address.is_emulator())
        region = self._signature.region
        # A name with dots does not fit the certificate of *.s3.amazonaws.com.
        is_path = address.endpoint is not None or "." in address.bucket
        host = f"s3.{region}.amazonaws.com" if is_path else f"{address.bucket}.s3.{region}.amazonaws.com"
        self._service = Service(address.endpoint or f"https://{host}", self._sign, more_passing=_CONFLICT)
        self._top = f"/{escaped(address.bucket, '')}" if is_path else ""

    def list(self, prefix: str) -> list[Listed]:
        found: list[Listed] = []
        query = {"list-type": "2", "prefix": prefix}
        while True:
            answer = self._service.ask(Request("GET", self._top or "/", query))
            self._check(answer, "list objects")
            page = _xml(answer.body)
            found += [
                Listed(_text(each, "Key"), int(_text(each, "Size")), _text(each, "ETag"))
                for each in page.iter("Contents")
            ]
            if _text(page, "IsTruncated") != "true":
                return sorted(found)
            query["continuation-token"] = _text(page, "NextContinuationToken")

    def delete_many(self, keys: Sequence[str]) -> None:
        for begin in range(0, len(keys), _MOST_DELETES):
            self._delete(keys[begin : begin + _MOST_DELETES])

    def _delete(self, keys: Sequence[str]) -> None:
        from base64 import b64encode
        from hashlib import md5
        from xml.sax.saxutils import escape

        names = "".join(f"<Object><Key>{escape(key)}</Key></Object>" for key in keys)
        body = f"<Delete><Quiet>true</Quiet>{names}</Delete>".encode()
        headers = {"Content-MD5": b64encode(md5(body, usedforsecurity=False).digest()).decode()}
        answer = self._service.ask(Request("POST", self._top or "/", {"delete": ""}, headers, body))
        self._check(answer, "delete objects")
        for error in _xml(answer.body).iter("Error"):
            refused = f"{_text(error, 'Code')}: {_text(error, 'Key')}"
            answer.status = 403 if _text(error, "Code") == "AccessDenied" else 500
            answer.body = f"<Error><Code>{escape(refused)}</Code></Error>".encode()
            self._check(answer, "delete objects")

    def _write(self, key: str, data: bytes, content_type: str = BYTES, *, if_absent: bool) -> Answer:
        headers = {"Content-Type": content_type}
        if if_absent:
            headers["If-None-Match"] = "*"
        return self._service.ask(Request("PUT", self._path(key), None, headers, data))

    def _path(self, key: str) -> str:
        return f"{self._top}/{escaped(key)}"

    def _sign(self, request: Request) -> None:
        self._signature.add(request, self._service.host, self._service.path)

    def _error_code(self, answer: Answer) -> str:
        from xml.etree.ElementTree import ParseError

        try:
            return _text(_xml(answer.body), "Code")
        except ParseError:
            return ""


def _xml(body: bytes) -> Element:
    """Without name spaces."""
    from xml.etree.ElementTree import fromstring

    root = fromstring(body)
    for each in root.iter():
        each.tag = each.tag.rpartition("}")[2]
    return root


def _text(element: Element, name: str) -> str:
    return element.findtext(name) or ""
