"""Ambient credentials of the clients that need the standard library only."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ork.errors import ObjectsError
from ork.executors.local_worker import inherited
from ork.objects.buckets import azure, environment, s3_signing
from ork.objects.buckets.address import read_address
from ork.objects.buckets.environment import names_to_pass
from ork.objects.buckets.gcs import AccessToken
from ork.objects.buckets.requests import Request
from ork.objects.buckets.s3_signing import S3Signature

EXPIRES = "2099-01-01T00:00:00Z"


class Metadata:
    """A credentials service: what it was asked, and what it answers for each path."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        metadata = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                metadata.asked.append((self.command, self.path, headers, body))
                answer = metadata.answers.get(self.path.partition("?")[0])
                data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
                self.send_response(200 if answer is not None else 404)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_PUT = do_POST = do_GET  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                """Nobody reads it."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def metadata() -> Iterator[Metadata]:
    service = Metadata()
    yield service
    service.server.shutdown()
    service.server.server_close()


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(environment, "_kept", {})
    for names in environment._NAMES.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


# ── Google Cloud ─────────────────────────────────────────────────────────────────────────────────


def test_a_google_token_comes_from_the_metadata_server_once(
    metadata: Metadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GCE_METADATA_HOST", metadata.host)
    path = "/computeMetadata/v1/instance/service-accounts/default/token"
    metadata.answers[path] = {"access_token": "token1", "expires_in": 3600}
    token = AccessToken()
    assert [token.value(), token.value()] == ["token1", "token1"]
    ((_, _, headers, _),) = metadata.asked
    assert headers["metadata-flavor"] == "Google"


def test_a_user_of_gcloud_is_known(metadata: Metadata, tmp_path: Path) -> None:
    metadata.answers["/token"] = {"access_token": "token2", "expires_in": 3600}
    user = {
        "type": "authorized_user",
        "client_id": "a",
        "client_secret": "b",
        "refresh_token": "c",
        "token_uri": f"http://{metadata.host}/token",
    }
    folder = tmp_path / ".config/gcloud"
    folder.mkdir(parents=True)
    (folder / "application_default_credentials.json").write_text(json.dumps(user))
    assert AccessToken().value() == "token2"
    assert b"refresh_token=c" in metadata.asked[0][3]


def test_a_service_account_key_is_refused_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key.json").write_text('{"type": "service_account"}')
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    with pytest.raises(ObjectsError, match="standard library cannot make") as raised:
        AccessToken().value()
    assert "gcloud auth" in str(raised.value.hint)


# ── AWS ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_signature_is_that_of_the_example_in_the_documentation(monkeypatch: pytest.MonkeyPatch) -> None:
    """GET Object in "Signature Calculations for the Authorization Header" of the Amazon S3 API reference."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    monkeypatch.setattr(s3_signing.time, "gmtime", lambda: (2013, 5, 24, 0, 0, 0, 4, 144, 0))
    request = Request("GET", "/test.txt", headers={"Range": "bytes=0-9"})
    S3Signature("us-east-1", is_anonymous_without_keys=False).add(request, "examplebucket.s3.amazonaws.com", "")
    assert request.headers["Authorization"].endswith(
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    )


def signed(metadata: Metadata, change: Callable[[], None]) -> dict[str, str]:
    change()
    request = Request("GET", "/key")
    S3Signature("eu-central-1", is_anonymous_without_keys=False).add(request, "host", "")
    return request.headers


def _keys(name: str) -> dict[str, str]:
    return {"AccessKeyId": name, "SecretAccessKey": "secret", "Token": "session", "Expiration": EXPIRES}


def test_a_container_has_a_role(metadata: Metadata, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    metadata.answers["/role"] = _keys("CONTAINER")
    (tmp_path / "token").write_text("let me in\n")
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://{metadata.host}/role")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
    headers = signed(metadata, lambda: None)
    assert "Credential=CONTAINER/" in headers["Authorization"]
    assert headers["x-amz-security-token"] == "session"
    assert metadata.asked[0][2]["authorization"] == "let me in"


def test_an_instance_has_a_role(metadata: Metadata, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_signing, "_METADATA", f"http://{metadata.host}/latest")
    place = "/latest/meta-data/iam/security-credentials/"
    metadata.answers = {"/latest/api/token": "session2", place: "role", place + "role": _keys("INSTANCE")}
    assert "Credential=INSTANCE/" in signed(metadata, lambda: None)["Authorization"]
    assert [method for method, *_ in metadata.asked] == ["PUT", "GET", "GET"]
    assert metadata.asked[2][2]["x-aws-ec2-metadata-token"] == "session2"


def test_a_pod_has_a_web_identity(metadata: Metadata, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("jwt")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/ork")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://{metadata.host}")
    metadata.answers["/"] = (
        '<R xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Credentials><AccessKeyId>POD</AccessKeyId><SecretAccessKey>s'
        f"</SecretAccessKey><SessionToken>t</SessionToken><Expiration>{EXPIRES}</Expiration></Credentials></R>"
    )
    assert "Credential=POD/" in signed(metadata, lambda: None)["Authorization"]
    assert b"WebIdentityToken=jwt" in metadata.asked[0][3]


def test_an_emulator_is_used_without_credentials_where_there_are_none() -> None:
    request = Request("GET", "/key")
    S3Signature(None, is_anonymous_without_keys=True).add(request, "host", "")
    assert request.headers == {}


# ── Azure ────────────────────────────────────────────────────────────────────────────────────────


def test_a_managed_identity_gets_a_token(metadata: Metadata, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"http://{metadata.host}/identity")
    monkeypatch.setenv("IDENTITY_HEADER", "header")
    metadata.answers["/identity"] = {"access_token": "token3", "expires_on": "4070908800"}
    request = Request("GET", "/key")
    azure.AzureBucket(read_address("az://container?account=name"))._sign(request)
    assert request.headers["Authorization"] == "Bearer token3"
    assert metadata.asked[0][2]["x-identity-header"] == "header"


def test_a_shared_access_signature_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "?sv=2021&sig=a%2Bb")
    request = Request("GET", "/key")
    azure.AzureBucket(read_address("az://container?account=name"))._sign(request)
    assert request.query == {"sv": "2021", "sig": "a+b"}


# ── workers on the scheduler's machine ───────────────────────────────────────────────────────────


def test_local_workers_are_given_the_credentials_of_their_bucket_only() -> None:
    scheduler = {"AWS_ACCESS_KEY_ID": "a", "AZURE_STORAGE_ACCOUNT_KEY": "b", "PATH": "/bin", "ORK_TOKEN": "c"}
    assert inherited(scheduler, names_to_pass("s3://bucket")) == {"PATH": "/bin", "ORK_STORE_AWS_ACCESS_KEY_ID": "a"}
    assert inherited(scheduler, names_to_pass("file:/objects")) == {"PATH": "/bin"}


# ── addresses ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("gs://", "not the URL of a bucket"),
        ("s3://bucket/a/../b", "not a prefix"),
        ("s3://bucket?zone=a", "have the parameters region and endpoint"),
        ("gs://bucket?endpoint=127.0.0.1", "endpoint is a URL"),
        ("az://container", "storage account is missing"),
    ],
)
def test_a_wrong_url_is_named(url: str, problem: str) -> None:
    with pytest.raises(ObjectsError, match=problem):
        read_address(url)


@pytest.mark.parametrize(
    ("url", "bucket", "prefix", "normal"),
    [
        ("gs://bucket", "bucket", "", "gs://bucket"),
        ("gs://bucket/a/b/", "bucket", "a/b/", "gs://bucket/a/b"),
        ("s3://bucket/a?region=x&endpoint=http://h:1/", "bucket", "a/", "s3://bucket/a?region=x&endpoint=http://h:1/"),
    ],
)
def test_a_url_has_a_bucket_and_a_prefix(url: str, bucket: str, prefix: str, normal: str) -> None:
    address = read_address(url)
    assert (address.bucket, address.prefix, address.url) == (bucket, prefix, normal)
