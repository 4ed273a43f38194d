"""Registry credentials: from the config.json of `docker login`, or from its credential helpers."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import subprocess
from collections.abc import Mapping
from typing import Any, TypeAlias

from ork.executors.docker.names import DOCKER_HUB

Credentials: TypeAlias = Mapping[str, str]
"""`username` and `password`, or `identitytoken`, and `serveraddress`: as the engine expects them for a pull."""

_HUB_KEY = "https://index.docker.io/v1/"
_HELPER_SECONDS = 20.0
_TOKEN_USER = "<token>"
_HELPER = re.compile(r"[A-Za-z0-9_.-]+")


def credentials_for(registry: str, config_dir: str) -> Credentials | None:
    """The credentials, or None if there are none: then the image is pulled anonymously.

    `config_dir` contains `config.json`; an unreadable one counts as empty. Runs helper programs, so it must not be called
    in an event loop.
    """
    config = _read(os.path.join(config_dir, "config.json"))
    key = _HUB_KEY if registry == DOCKER_HUB else registry
    helper = _table(config, "credHelpers").get(registry) or config.get("credsStore")
    if isinstance(helper, str) and _HELPER.fullmatch(helper):
        found = _from_helper(helper, key)
        if found is not None:
            return found
    entry = _table(config, "auths").get(key) or _table(config, "auths").get(f"https://{registry}")
    return _stored_credentials(entry, key) if isinstance(entry, dict) else None


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            config = json.load(file)
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}


def _table(config: dict[str, Any], name: str) -> dict[str, Any]:
    table = config.get(name)
    return table if isinstance(table, dict) else {}


def _stored_credentials(entry: dict[str, Any], key: str) -> Credentials | None:
    token = entry.get("identitytoken")
    if isinstance(token, str) and token:
        return {"identitytoken": token, "serveraddress": key}
    try:
        user, colon, password = base64.b64decode(str(entry.get("auth", "")), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return {"username": user, "password": password.rstrip("\0"), "serveraddress": key} if colon else None


def _from_helper(helper: str, key: str) -> Credentials | None:
    """The credentials from a helper program; None if it is missing, fails, or has none."""
    try:
        done = subprocess.run(
            [f"docker-credential-{helper}", "get"],
            input=key.encode(),
            capture_output=True,
            timeout=_HELPER_SECONDS,
            check=True,
        )
        answer = json.loads(done.stdout)
        user, secret = str(answer["Username"]), str(answer["Secret"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return None
    if user == _TOKEN_USER:
        return {"identitytoken": secret, "serveraddress": key}
    return {"username": user, "password": secret, "serveraddress": key}
