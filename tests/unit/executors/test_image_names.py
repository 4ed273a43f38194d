"""Names of images, and who we are to their registries."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from ork.executors.docker.credentials import credentials_for
from ork.executors.docker.names import ImageName, read_image_name

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("etl", ImageName("docker.io", "library/etl", "latest", "etl")),
        ("team/etl:1", ImageName("docker.io", "team/etl", "1", "team/etl")),
        ("host.org/a/b:v2", ImageName("host.org", "a/b", "v2", "host.org/a/b")),
        ("127.0.0.1:5000/etl", ImageName("127.0.0.1:5000", "etl", "latest", "127.0.0.1:5000/etl")),
        ("localhost/etl", ImageName("localhost", "etl", "latest", "localhost/etl")),
        (f"h.org/etl:1@{DIGEST}", ImageName("h.org", "etl", DIGEST, "h.org/etl")),
    ],
)
def test_a_name_is_read_as_registries_read_it(text: str, name: ImageName) -> None:
    assert read_image_name(text) == name


def test_a_digest_names_one_image_for_ever() -> None:
    assert read_image_name(f"h.org/etl@{DIGEST}").is_fixed
    assert not read_image_name("h.org/etl:1").is_fixed
    assert read_image_name("h.org:5000/etl:1").at(DIGEST) == f"h.org:5000/etl@{DIGEST}"


def config(folder: Path, content: Any) -> str:
    (folder / "config.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return str(folder)


def test_a_login_is_found_by_its_registry(tmp_path: Path) -> None:
    auth = base64.b64encode(b"ork:open sesame").decode()
    folder = config(tmp_path, {"auths": {"h.org:5000": {"auth": auth}, "https://index.docker.io/v1/": {"auth": auth}}})
    known = {"username": "ork", "password": "open sesame"}
    assert credentials_for("h.org:5000", folder) == {**known, "serveraddress": "h.org:5000"}
    assert credentials_for("docker.io", folder) == {**known, "serveraddress": "https://index.docker.io/v1/"}
    assert credentials_for("other.org", folder) is None


def test_a_token_goes_before_a_password(tmp_path: Path) -> None:
    folder = config(tmp_path, {"auths": {"h.org": {"identitytoken": "t", "auth": "eDp5"}}})
    assert credentials_for("h.org", folder) == {"identitytoken": "t", "serveraddress": "h.org"}


@pytest.mark.parametrize("content", ["", "[]", "{", '{"auths": 3}', '{"auths": {"h.org": {"auth": "???"}}}'])
def test_a_config_that_makes_no_sense_knows_nobody(tmp_path: Path, content: str) -> None:
    assert credentials_for("h.org", config(tmp_path, content)) is None


def test_no_config_knows_nobody(tmp_path: Path) -> None:
    assert credentials_for("h.org", str(tmp_path)) is None


def test_a_helper_program_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helper = tmp_path / "docker-credential-vault"
    helper.write_text('#!/bin/sh\nread host\necho "{\\"Username\\": \\"$1-$host\\", \\"Secret\\": \\"s\\"}"\n')
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    folder = config(tmp_path, {"credHelpers": {"h.org": "vault"}})
    assert credentials_for("h.org", folder) == {"username": "get-h.org", "password": "s", "serveraddress": "h.org"}


@pytest.mark.parametrize("helper", ["not-there", "../evil", "false"])
def test_a_helper_that_does_not_answer_is_passed_over(tmp_path: Path, helper: str) -> None:
    folder = config(tmp_path, {"credsStore": helper, "auths": {"h.org": {"auth": "eDp5"}}})
    assert credentials_for("h.org", folder) == {"username": "x", "password": "y", "serveraddress": "h.org"}
