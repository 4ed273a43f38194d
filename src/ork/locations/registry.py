"""Asks a registry which image a name stands for now, without fetching it. Plain calls: not for an event loop."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from ork.executors.docker.credentials import Credentials
from ork.executors.docker.names import DOCKER_HUB, ImageName

SECONDS = 20.0
_LARGEST_MANIFEST = 4 << 20
_LARGEST_TOKEN = 1 << 20
_HUB_HOST = "registry-1.docker.io"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
# An image for several kinds of machines has one digest too, that of its list.
_MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')


class RegistryError(Exception):
    """A sentence: why the registry did not say which image it is."""


class _Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


def ask_digest(image: ImageName, credentials: Credentials | None) -> str:
    """The digest of the image, in one small request (and two more where a login is asked for)."""
    if image.is_fixed:
        return image.reference
    host = _HUB_HOST if image.registry == DOCKER_HUB else image.registry
    url = f"{'http' if _is_loopback(host) else 'https'}://{host}/v2/{image.repository}/manifests/{image.reference}"
    headers = {"Accept": _MANIFESTS}
    answer = _request("HEAD", url, headers, 0)
    if answer.status == 401:
        headers |= _login(answer.headers.get("www-authenticate", ""), image, credentials, host)
        answer = _request("HEAD", url, headers, 0)
    _check(answer, image)
    digest = answer.headers.get("docker-content-digest", "")
    if _DIGEST.fullmatch(digest):
        return digest
    # Not every registry says so in the head: the digest is that of the manifest's bytes.
    answer = _request("GET", url, headers, _LARGEST_MANIFEST)
    _check(answer, image)
    return f"sha256:{hashlib.sha256(answer.body).hexdigest()}"


def _check(answer: _Answer, image: ImageName) -> None:
    if answer.status == 404:
        raise RegistryError(f"{image.registry} has no image {image.repository}:{image.reference}")
    if answer.status in (401, 403):
        raise RegistryError(f"{image.registry} does not let us see {image.repository} (it answered {answer.status})")
    if answer.status != 200:
        raise RegistryError(f"{image.registry} answered {answer.status}")


def _login(challenge: str, image: ImageName, credentials: Credentials | None, host: str) -> dict[str, str]:
    """The header that answers the registry's challenge."""
    kind, _, rest = challenge.partition(" ")
    if kind.lower() == "basic":
        if credentials is None or "username" not in credentials:
            raise RegistryError(f"{image.registry} wants a login, and none is known: docker login {image.registry}")
        return {"Authorization": _basic(credentials)}
    if kind.lower() != "bearer":
        raise RegistryError(f"{image.registry} wants a login of a kind that is not known here ({kind[:20]})")
    return {"Authorization": f"Bearer {_token(dict(_CHALLENGE.findall(rest)), image, credentials, host)}"}


def _token(told: dict[str, str], image: ImageName, credentials: Credentials | None, host: str) -> str:
    realm = told.get("realm", "")
    # A password goes out in the clear only where nobody can listen.
    if urlsplit(realm).scheme != "https" and not (urlsplit(realm).scheme == "http" and _is_loopback(host)):
        raise RegistryError(f"{image.registry} names no safe place to log in ({realm[:100]})")
    scope = told.get("scope") or f"repository:{image.repository}:pull"
    wanted = {"scope": scope} | ({"service": told["service"]} if "service" in told else {})
    answer = _token_answer(realm, wanted, credentials)
    if answer.status != 200:
        raise RegistryError(f"{image.registry} refused the login (it answered {answer.status})")
    try:
        document = json.loads(answer.body)
        return str(document.get("token") or document["access_token"])
    except (ValueError, KeyError, AttributeError):
        raise RegistryError(f"the login at {image.registry} gave no token") from None


def _token_answer(realm: str, wanted: dict[str, str], credentials: Credentials | None) -> _Answer:
    if credentials is not None and "identitytoken" in credentials:
        form = {**wanted, "grant_type": "refresh_token", "refresh_token": credentials["identitytoken"]}
        body = urlencode({**form, "client_id": "ork"}).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return _request("POST", realm, headers, _LARGEST_TOKEN, body)
    headers = {} if credentials is None else {"Authorization": _basic(credentials)}
    return _request("GET", f"{realm}{'&' if '?' in realm else '?'}{urlencode(wanted)}", headers, _LARGEST_TOKEN)


def _basic(credentials: Credentials) -> str:
    pair = f"{credentials['username']}:{credentials['password']}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def _request(method: str, url: str, headers: dict[str, str], limit: int, body: bytes | None = None) -> _Answer:
    """One request, no redirects: credentials go to whom they are meant for and to nobody else."""
    parts = urlsplit(url)
    target = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
    try:
        make = http.client.HTTPConnection if parts.scheme == "http" else http.client.HTTPSConnection
        connection = make(parts.netloc, timeout=SECONDS)
        try:
            connection.request(method, target, body, headers)
            answer = connection.getresponse()
            content = b"" if limit == 0 else answer.read(limit + 1)
            told = {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise RegistryError(f"{parts.netloc} cannot be asked: {error or type(error).__name__}") from None
    if len(content) > limit:
        raise RegistryError(f"{parts.netloc} said more than {limit} bytes")
    return _Answer(answer.status, told, content)


def _is_loopback(host: str) -> bool:
    """Where engines speak plain HTTP too."""
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    return name == "localhost" or name.startswith("127.") or name == "[::1]"
