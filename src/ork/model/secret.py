"""Secrets and sensitive params.

A secret is declared in ork.yaml: where its value comes from, and which workflows may use it. Never the value. A sensitive param is
stored encrypted with the installation's key, and decrypted when an attempt is launched.

SIV with HMAC-SHA-256: the tag over name and value is also the nonce of the key stream, so equal values have equal
ciphertexts and every change is detected. Why not a library: docs/adr/0009.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from ork.model.record import Record
from ork.model.trees import pointers
from ork.model.workflow import CompiledWorkflow, Custom, Secret, TaskSpec, Value

OWN_PREFIX = "ORK_"  # reserved for Ork: tokens, addresses, hook secrets


class SecretOrigin(StrEnum):
    """The allowed values of `from`."""

    ENV = "env"
    FILE = "file"
    COMMAND = "command"
    GCP = "gcp"
    KUBERNETES = "kubernetes"


class SecretDeclaration(Record):
    """`variable`, `path`, `argv` or `secret` is set, depending on the origin. `workflows` holds names and patterns; None means
    all."""

    name: str
    origin: SecretOrigin
    variable: str | None = None
    path: str | None = None
    argv: tuple[str, ...] = ()
    secret: str | None = None  # in Secret Manager: its name, or projects/P/secrets/NAME; on Kubernetes: the Secret
    key: str | None = None  # on Kubernetes: the entry of the Secret
    version: str = "latest"
    timeout: float = 10.0
    workflows: tuple[str, ...] | None = None

    def is_for(self, workflow: str) -> bool:
        from fnmatch import fnmatchcase

        return self.workflows is None or any(fnmatchcase(workflow, pattern) for pattern in self.workflows)


def secret_reference(declared: SecretDeclaration, project: str | None) -> str | None:
    """The version of a secret in Secret Manager, as platforms refer to it; None if its project is unknown."""
    name = declared.secret or declared.name
    if not name.startswith("projects/"):
        if project is None:
            return None
        name = f"projects/{project}/secrets/{name}"
    return f"{name}/versions/{declared.version}"


def secret_entry(declared: SecretDeclaration) -> str:
    """The entry of a Kubernetes Secret, as `secret/key`. Both are the secret's own name unless they are given."""
    return f"{declared.secret or declared.name}/{declared.key or declared.name}"


def is_reserved(name: str) -> bool:
    """True for names that are never passed to a task as a secret."""
    return name.upper().startswith(OWN_PREFIX)


def declaration_lines(name: str) -> str:
    """The lines that declare the secret in ork.yaml."""
    return f"secrets: {{{name}: {{from: env}}}}"


def named_secrets(spec: TaskSpec) -> tuple[str, ...]:
    """The secrets named in the task's definition, without duplicates."""
    action = spec.action
    if not (spec.inputs or spec.env or isinstance(action, Custom)):
        return ()
    values: list[Value] = [value for _, value in (*spec.inputs, *spec.env)]
    if isinstance(action, Custom):
        values += [value for tree in (action.config, action.task) for value, _ in pointers(tree)]
    return tuple(dict.fromkeys(value.name for value in values if isinstance(value, Secret)))


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
