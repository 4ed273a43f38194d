"""Reads the value of a declared secret from its origin. A new origin is a new function in `PROVIDERS`."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ork.errors import SecretError
from ork.model.secret import SecretDeclaration, SecretOrigin, is_reserved

MAX_BYTES = 1 << 16


class ProviderContext(NamedTuple):
    """The folder and environment that providers read from, and how long they may wait."""

    root: str
    environ: Mapping[str, str]
    wait_seconds: float = 0.0


Provider = Callable[[SecretDeclaration, ProviderContext], str]
"""Returns the value. SecretError says why there is none, and never contains a value."""


def from_env(secret: SecretDeclaration, context: ProviderContext) -> str:
    variable = secret.variable or secret.name
    value = context.environ.get(variable)
    if value is None:
        raise SecretError(f"secret `{secret.name}`: the variable {variable} is not set where the scheduler runs")
    return value


def from_file(secret: SecretDeclaration, context: ProviderContext) -> str:
    """Relative paths start at the project's folder. A trailing newline is not part of the value."""
    path = os.path.join(context.root, secret.path or "")
    return read_secret_file(path, f"secret `{secret.name}`: {path}")


def read_secret_file(path: str, shown: str) -> str:
    try:
        # O_NONBLOCK, because opening a pipe without a writer would block before it can be rejected.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise SecretError(f"{shown} is not a regular file")
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SecretError(f"{shown} cannot be read: {error.strerror}") from None
    return decoded(data, shown)


def decoded(data: bytes, shown: str) -> str:
    if len(data) > MAX_BYTES:
        raise SecretError(f"{shown} has more than {MAX_BYTES:,} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise SecretError(f"{shown} is not UTF-8 text") from None
    if "\0" in text:
        raise SecretError(f"{shown} contains a NUL character, which a variable cannot")
    return text.removesuffix("\n").removesuffix("\r")


def from_command(secret: SecretDeclaration, context: ProviderContext) -> str:
    from ork.secrets.commands import output_of

    environ = {name: value for name, value in context.environ.items() if not is_reserved(name)}
    return output_of(secret, context.root, environ, context.wait_seconds)


def from_secret_manager(secret: SecretDeclaration, _context: ProviderContext) -> str:
    """Only Cloud Run itself reads such a secret. Its value never passes through a scheduler."""
    raise SecretError(
        f"secret `{secret.name}` is in Secret Manager, which only tasks on Cloud Run are given",
        hint=f"for tasks elsewhere: `from: command`, `argv: [gcloud, secrets, versions, access, {secret.version}, "
        f"--secret, {secret.secret or secret.name}]`",
    )


def from_kubernetes(secret: SecretDeclaration, _context: ProviderContext) -> str:
    """Only the kubelet reads such a secret. Its value never passes through a scheduler."""
    raise SecretError(
        f"secret `{secret.name}` is in a Secret of Kubernetes, which only tasks on Kubernetes are given",
        hint="for tasks elsewhere declare it with `from: env`, `file` or `command`",
    )


PROVIDERS: Mapping[SecretOrigin, Provider] = {
    SecretOrigin.ENV: from_env,
    SecretOrigin.FILE: from_file,
    SecretOrigin.COMMAND: from_command,
    SecretOrigin.GCP: from_secret_manager,
    SecretOrigin.KUBERNETES: from_kubernetes,
}
