"""Asks a registry for the current digest of an image, without pulling it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from ork.errors import UsageError
from ork.executors.docker.credentials import Credentials
from ork.executors.docker.names import DOCKER_HUB, ImageName
from ork.outbound.addresses import NoResponseError

if TYPE_CHECKING:
    from ork.outbound.fetch import FetchedResponse

SECONDS = 20.0
_MAX_MANIFEST = 4 << 20
_MAX_TOKEN = 1 << 20
_HUB_HOST = "registry-1.docker.io"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
# A multi-platform image has one digest too, that of its index.
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
    """The message says why the registry returned no digest."""


async def ask_digest(image: ImageName, credentials: Credentials | None) -> str:
    """The digest of the image, in one small request (plus two if a login is required)."""
    if image.is_fixed:
        return image.reference
    host = _HUB_HOST if image.registry == DOCKER_HUB else image.registry
    url = f"{'http' if _is_loopback(host) else 'https'}://{host}/v2/{image.repository}/manifests/{image.reference}"
    headers = {"Accept": _MANIFESTS}
    answer = await _request("HEAD", url, headers, 0)
    if answer.status == 401:
        headers |= await _login(_challenge(answer), image, credentials, host)
        answer = await _request("HEAD", url, headers, 0)
    _check(answer, image)
    digest = answer.headers.get("docker-content-digest", "")
    if _DIGEST.fullmatch(digest):
        return digest
    # Not every registry sends the header: the digest is the hash of the manifest.
    answer = await _request("GET", url, headers, _MAX_MANIFEST)
    _check(answer, image)
    return f"sha256:{hashlib.sha256(answer.body).hexdigest()}"


def _check(answer: FetchedResponse, image: ImageName) -> None:
    if answer.status == 404:
        raise RegistryError(f"{image.registry} has no image {image.repository}:{image.reference}")
    if answer.status in (401, 403):
        raise RegistryError(f"{image.registry} does not allow access to {image.repository} (status {answer.status})")
    if answer.status != 200:
        raise RegistryError(f"{image.registry} returned status {answer.status}")


def _challenge(answer: FetchedResponse) -> str:
    """The challenge to answer: a token, if the registry offers several ways."""
    offered = answer.headers.get_list("www-authenticate")
    return next((each for each in offered if each.lower().startswith("bearer ")), offered[0] if offered else "")


async def _login(challenge: str, image: ImageName, credentials: Credentials | None, host: str) -> dict[str, str]:
    """The header that answers the registry's challenge."""
    kind, _, rest = challenge.partition(" ")
    if kind.lower() == "basic":
        if credentials is None or "username" not in credentials:
            raise RegistryError(f"{image.registry} requires a login: docker login {image.registry}")
        return {"Authorization": _basic(credentials)}
    if kind.lower() != "bearer":
        raise RegistryError(f"{image.registry} requires an unsupported kind of login ({kind[:20]})")
    return {"Authorization": f"Bearer {await _token(dict(_CHALLENGE.findall(rest)), image, credentials, host)}"}


async def _token(challenge: dict[str, str], image: ImageName, credentials: Credentials | None, host: str) -> str:
    realm = challenge.get("realm", "")
    # Credentials are sent unencrypted only over loopback.
    if urlsplit(realm).scheme != "https" and not (urlsplit(realm).scheme == "http" and _is_loopback(host)):
        raise RegistryError(f"{image.registry} names no secure URL for the login ({realm[:100]})")
    scope = challenge.get("scope") or f"repository:{image.repository}:pull"
    wanted = {"scope": scope} | ({"service": challenge["service"]} if "service" in challenge else {})
    answer = await _token_response(realm, wanted, credentials)
    if answer.status != 200:
        raise RegistryError(f"{image.registry} rejected the login (status {answer.status})")
    try:
        document = json.loads(answer.body)
        return str(document.get("token") or document["access_token"])
    except (ValueError, KeyError, AttributeError):
        raise RegistryError(f"the login at {image.registry} returned no token") from None


async def _token_response(realm: str, wanted: dict[str, str], credentials: Credentials | None) -> FetchedResponse:
    if credentials is not None and "identitytoken" in credentials:
        form = {**wanted, "grant_type": "refresh_token", "refresh_token": credentials["identitytoken"]}
        body = urlencode({**form, "client_id": "ork"}).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return await _request("POST", realm, headers, _MAX_TOKEN, body)
    headers = {} if credentials is None else {"Authorization": _basic(credentials)}
    return await _request("GET", f"{realm}{'&' if '?' in realm else '?'}{urlencode(wanted)}", headers, _MAX_TOKEN)


def _basic(credentials: Credentials) -> str:
    pair = f"{credentials['username']}:{credentials['password']}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


async def _request(
    method: str, url: str, headers: dict[str, str], limit: int, body: bytes | None = None
) -> FetchedResponse:
    """Redirects are not followed: credentials are sent only to their own host."""
    from ork.outbound.fetch import fetch

    try:
        return await fetch(
            url, None, method=method, headers=headers, body=body, timeout=SECONDS, limit=limit, redirects=0
        )
    except (NoResponseError, UsageError, ValueError) as error:
        raise RegistryError(f"the registry cannot be reached: {error}") from None


def _is_loopback(host: str) -> bool:
    """Hosts for which engines use plain HTTP too."""
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    return name == "localhost" or name.startswith("127.") or name == "[::1]"
