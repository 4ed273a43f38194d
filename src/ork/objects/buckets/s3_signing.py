"""Signatures for S3 (version 4), and the credentials of this process as AWS documents them."""

from __future__ import annotations

import time

from ork.errors import ObjectsError
from ork.objects.buckets.environment import variables
from ork.objects.buckets.requests import fetch, query_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ork.objects.buckets.requests import Request

_EMPTY_HASH = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
_CONTAINER_HOST = "http://169.254.170.2"
_METADATA = "http://169.254.169.254/latest"
_EARLY_SECONDS = 300.0  # credentials are renewed this long before they expire


class Keys:
    def __init__(self, access: str, secret: str, session: str | None, expires_at: float = float("inf")) -> None:
        self.access, self.secret, self.session = access, secret, session
        self.expires_at = expires_at  # of the wall clock


class S3Signature:
    def __init__(self, region: str | None, *, is_anonymous_without_keys: bool) -> None:
        self._variable = variables("s3")
        self.region = region or self._variable("AWS_REGION") or self._variable("AWS_DEFAULT_REGION") or "us-east-1"
        self._is_anonymous_without_keys = is_anonymous_without_keys
        self._keys: Keys | None = None

    def add(self, request: Request, host: str, base_path: str) -> None:
        keys = self._current_keys()
        if keys is None:
            return
        import hmac
        from hashlib import sha256

        now = time.gmtime()
        day, moment = time.strftime("%Y%m%d", now), time.strftime("%Y%m%dT%H%M%SZ", now)
        headers = request.headers
        headers["x-amz-date"] = moment
        headers["x-amz-content-sha256"] = sha256(request.body).hexdigest() if request.body else _EMPTY_HASH
        if keys.session:
            headers["x-amz-security-token"] = keys.session
        signed = {"host": host, **{name.lower(): value for name, value in headers.items() if name != "Content-Type"}}
        names = ";".join(sorted(signed))
        lines = "".join(f"{name}:{signed[name].strip()}\n" for name in sorted(signed))
        canonical = "\n".join(
            [request.method, (base_path + request.path) or "/", query_text(request.query), lines, names,
             headers["x-amz-content-sha256"]]
        )  # fmt: skip
        scope = f"{day}/{self.region}/s3/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
        key = f"AWS4{keys.secret}".encode()
        for part in (day, self.region, "s3", "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        headers["Authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={keys.access}/{scope}, SignedHeaders={names}, Signature={signature}"
        )

    def _current_keys(self) -> Keys | None:
        if self._keys is not None and time.time() < self._keys.expires_at - _EARLY_SECONDS:
            return self._keys
        self._keys = _from_environment(self._variable)
        if self._keys is None and not self._is_anonymous_without_keys:
            self._keys = _from_services(self._variable, self.region)
        return self._keys


def _from_environment(variable: Callable[[str], str]) -> Keys | None:
    access, secret = variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")
    return Keys(access, secret, variable("AWS_SESSION_TOKEN") or None) if access and secret else None


def _from_services(variable: Callable[[str], str], region: str) -> Keys:
    """From the first that this machine has: a web identity (EKS), a container's role (ECS, EKS), the instance's role (EC2)."""
    if variable("AWS_WEB_IDENTITY_TOKEN_FILE") and variable("AWS_ROLE_ARN"):
        return _from_web_identity(variable, region)
    relative, full = (variable(f"AWS_CONTAINER_CREDENTIALS_{kind}_URI") for kind in ("RELATIVE", "FULL"))
    if relative or full:
        return _from_container(f"{_CONTAINER_HOST}{relative}" if relative else full, variable)
    try:
        return _from_instance()
    except ObjectsError as problem:
        raise ObjectsError(
            f"no AWS credentials: {problem.message}",
            hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run with a role (EC2, ECS, EKS)",
        ) from problem


def _from_web_identity(variable: Callable[[str], str], region: str) -> Keys:
    from urllib.parse import urlencode
    from xml.etree.ElementTree import fromstring

    with open(variable("AWS_WEB_IDENTITY_TOKEN_FILE"), encoding="utf-8") as file:
        token = file.read().strip()
    fields = {
        "Action": "AssumeRoleWithWebIdentity",
        "Version": "2011-06-15",
        "RoleArn": variable("AWS_ROLE_ARN"),
        "RoleSessionName": variable("AWS_ROLE_SESSION_NAME") or "ork-worker",
        "WebIdentityToken": token,
    }
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    host = variable("AWS_ENDPOINT_URL_STS") or f"https://sts.{region}.amazonaws.com"
    answer = fromstring(fetch(f"{host}/", headers, method="POST", body=urlencode(fields).encode()))
    found = {each.tag.rpartition("}")[2]: each.text or "" for each in answer.iter()}
    return Keys(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"], _seconds_of(found["Expiration"]))


def _from_container(url: str, variable: Callable[[str], str]) -> Keys:
    token, file_name = (variable(f"AWS_CONTAINER_AUTHORIZATION_TOKEN{end}") for end in ("", "_FILE"))
    if file_name:
        with open(file_name, encoding="utf-8") as file:
            token = file.read().strip()
    return _from_json(fetch(url, {"Authorization": token} if token else {}))


def _from_instance() -> Keys:
    """With a session token (IMDSv2)."""
    wanted = {"X-aws-ec2-metadata-token-ttl-seconds": "300"}
    token = fetch(f"{_METADATA}/api/token", wanted, method="PUT").decode()
    headers, place = {"X-aws-ec2-metadata-token": token}, f"{_METADATA}/meta-data/iam/security-credentials/"
    role = fetch(place, headers).decode().split("\n")[0]
    return _from_json(fetch(place + role, headers))


def _from_json(answer: bytes) -> Keys:
    import json

    found: dict[str, Any] = json.loads(answer)
    return Keys(found["AccessKeyId"], found["SecretAccessKey"], found.get("Token"), _seconds_of(found["Expiration"]))


def _seconds_of(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp()
