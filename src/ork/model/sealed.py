"""Sensitive params: stored encrypted with the installation's key, decrypted when an attempt is launched.

SIV with HMAC-SHA-256: the tag over name and value is also the nonce of the key stream, so equal values have equal
ciphertexts and every change is detected. Why not a library: docs/adr/0009.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from ork.model.workflow import CompiledWorkflow

SHOWN = "•••"
PARAM_PREFIX = "ORK_PARAM_"  # prefix of the environment variables that pass values to a worker
_FIELD = "$sealed"
_VERSION = b"\x01"
_TAG_BYTES = 16
_BLOCK_BYTES = 32


class SealError(Exception):
    """The value was sealed with another key or for another param, or was changed."""


def is_sealed(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get(_FIELD), str)


def seal(key: bytes, workflow: str, name: str, value: Any) -> dict[str, str]:
    text = json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
    tag = _tag(key, workflow, name, text)
    return {_FIELD: b64encode(_VERSION + tag + _xor(key, tag, text)).decode()}


def unseal(key: bytes, workflow: str, name: str, sealed: Any) -> Any:
    """Decrypt a value. Raises SealError if it was not sealed for this param."""
    try:
        data = b64decode(sealed[_FIELD], validate=True)
    except (ValueError, KeyError, TypeError):
        raise SealError from None
    from hmac import compare_digest

    version, tag, encrypted = data[:1], data[1 : 1 + _TAG_BYTES], data[1 + _TAG_BYTES :]
    text = _xor(key, tag, encrypted)
    if version != _VERSION or not compare_digest(tag, _tag(key, workflow, name, text)):
        raise SealError
    return json.loads(text)


def seal_params(workflow: CompiledWorkflow, params: Mapping[str, Any], key: bytes) -> dict[str, Any]:
    """The params of a run as they are stored. Null and sealed values are unchanged."""
    names = {param.name for param in workflow.params if param.sensitive}
    return {
        name: seal(key, workflow.name, name, value)
        if name in names and value is not None and not is_sealed(value)
        else value
        for name, value in params.items()
    }


def has_sensitive(workflow: CompiledWorkflow) -> bool:
    return any(param.sensitive for param in workflow.params)


def sealed_names(params: Mapping[str, Any]) -> list[str]:
    return [name for name, value in params.items() if is_sealed(value)]


def redacted_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Params for display, with sensitive values redacted."""
    return {name: SHOWN if is_sealed(value) else value for name, value in params.items()}


def _tag(key: bytes, workflow: str, name: str, text: bytes) -> bytes:
    about = b"".join(len(part).to_bytes(4, "big") + part for part in (workflow.encode(), name.encode()))
    return _digest(_derived(key, b"tag"), about + text)[:_TAG_BYTES]


def _xor(key: bytes, tag: bytes, data: bytes) -> bytes:
    """XOR with a key stream; applying it twice restores the data."""
    own, size = _derived(key, b"stream"), len(data)
    blocks = range(-(-size // _BLOCK_BYTES))
    stream = b"".join(_digest(own, tag + number.to_bytes(8, "big")) for number in blocks)[:size]
    return (int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")).to_bytes(size, "big")


def _derived(key: bytes, purpose: bytes) -> bytes:
    """A separate key per purpose: the installation's key also signs attempt tokens."""
    return _digest(key, b"ork sealed params v1 " + purpose)


def _digest(key: bytes, data: bytes) -> bytes:
    from hmac import digest  # loads OpenSSL, which few runs need

    return digest(key, data, "sha256")
