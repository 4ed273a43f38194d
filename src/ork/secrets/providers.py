"""Where the value of a declared secret comes from. A new origin is a new function in `PROVIDERS`."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ork.errors import SecretError
from ork.model.secret import SecretDeclaration, SecretOrigin, is_reserved

LARGEST_BYTES = 1 << 16


class Surroundings(NamedTuple):
    """What providers read from, and for how long one of them may hold up its caller."""

    root: str
    environ: Mapping[str, str]
    patience: float = 0.0


Provider = Callable[[SecretDeclaration, Surroundings], str]
"""The value; SecretError says why there is none, and never repeats a value."""


def from_env(secret: SecretDeclaration, around: Surroundings) -> str:
    variable = secret.variable or secret.name
    value = around.environ.get(variable)
    if value is None:
        raise SecretError(f"secret `{secret.name}`: the variable {variable} is not set where the scheduler runs")
    return value


def from_file(secret: SecretDeclaration, around: Surroundings) -> str:
    """A relative path counts from the project's folder. A newline at the end does not belong to the value."""
    path = os.path.join(around.root, secret.path or "")
    return read_secret_file(path, f"secret `{secret.name}`: {path}")


def read_secret_file(path: str, shown: str) -> str:
    try:
        # Without blocking: a pipe that nobody writes to would be waited for before it could be refused.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise SecretError(f"{shown} is not a regular file")
            data = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise SecretError(f"{shown} cannot be read: {error.strerror}") from None
    return decoded(data, shown)


def decoded(data: bytes, shown: str) -> str:
    if len(data) > LARGEST_BYTES:
        raise SecretError(f"{shown} holds more than {LARGEST_BYTES:,} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise SecretError(f"{shown} does not hold text") from None
    if "\0" in text:
        raise SecretError(f"{shown} holds a NUL character, which no variable can")
    return text.removesuffix("\n").removesuffix("\r")


def from_command(secret: SecretDeclaration, around: Surroundings) -> str:
    from ork.secrets.commands import output_of

    environ = {name: value for name, value in around.environ.items() if not is_reserved(name)}
    return output_of(secret, around.root, environ, around.patience)


PROVIDERS: Mapping[SecretOrigin, Provider] = {
    SecretOrigin.ENV: from_env,
    SecretOrigin.FILE: from_file,
    SecretOrigin.COMMAND: from_command,
}
