"""The secrets of one project: those declared in ork.yaml, and those in `.env` and `.ork/secrets`."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping

from ork.errors import SecretError, UndeclaredSecretError
from ork.model.secret import (
    SecretDeclaration,
    SecretOrigin,
    declaration_lines,
    is_reserved,
    secret_entry,
    secret_reference,
)
from ork.secrets.providers import PROVIDERS, ProviderContext, read_secret_file

READY_SECONDS = 2.0  # how long commands may delay the launch of other tasks
_ELSEWHERE = (SecretOrigin.COMMAND, SecretOrigin.GCP, SecretOrigin.KUBERNETES)  # their values are not at hand
ReadEnvFile = Callable[[str], dict[str, str]]


class ProjectSecrets:
    def __init__(
        self,
        declared: Mapping[str, SecretDeclaration],
        context: ProviderContext,
        env_file: str,
        folder: str,
        read_env_file: ReadEnvFile,
    ) -> None:
        self._declared = declared
        self._has_commands = any(secret.origin is SecretOrigin.COMMAND for secret in declared.values())
        self._context = context
        self._env_file = env_file
        self._folder = folder
        self._read_env_file = read_env_file

    async def ready(self, wanted: Iterable[tuple[str, str]]) -> None:
        """Starts the commands of these secrets (name and workflow) and waits briefly for their values."""
        if not self._has_commands:
            return
        declared = {self._declared[name] for name, workflow in wanted if self._is_from_command(name, workflow)}
        if declared:
            import asyncio

            await asyncio.to_thread(self._run_commands, declared)

    def value(self, name: str, workflow: str, *, waits: bool = False) -> str:
        """The value for a task of the workflow. UndeclaredSecretError if the workflow may not use the secret.

        SecretNotYetError if its command has not ended; `waits` waits for it instead.
        """
        if is_reserved(name):
            raise UndeclaredSecretError(
                f"`{name}` is reserved for Ork and never passed to a task", hint="name another secret"
            )
        declared = self._for(name, workflow)
        if declared is not None:
            return self._read(declared, _command_seconds(declared) if waits else 0.0)
        if name not in self.found():
            raise UndeclaredSecretError(
                f"the project declares no secret `{name}`",
                hint=f"add `{declaration_lines(name)}` to ork.yaml, or a line {name}=… to .env",
            )
        value = self._find(name)
        if value is None:
            raise SecretError(f"there is no secret `{name}` in the environment, .env or .ork/secrets")
        return value

    def entry(self, name: str, workflow: str) -> str:
        """The entry of a Kubernetes Secret, as `secret/key`. SecretError if it is not declared that way for the workflow."""
        declared = self._for(name, workflow)
        if declared is None or declared.origin is not SecretOrigin.KUBERNETES:
            raise SecretError(
                f"secret `{name}` cannot be given to a task on Kubernetes: its value would be visible there",
                hint=f"keep it in a Secret and declare `secrets: {{{name}: {{from: kubernetes}}}}` in ork.yaml",
            )
        return secret_entry(declared)

    def _for(self, name: str, workflow: str) -> SecretDeclaration | None:
        declared = self._declared.get(name)
        if declared is not None and not declared.is_for(workflow):
            raise UndeclaredSecretError(
                f"ork.yaml does not give secret `{name}` to workflow `{workflow}`",
                hint=f"add {workflow} to `workflows` of secrets.{name} in ork.yaml",
            )
        return declared

    def reference(self, name: str, workflow: str, project: str | None) -> str:
        """Where Cloud Run finds the secret by itself. SecretError if it is not declared that way for the workflow."""
        declared = self._for(name, workflow)
        is_there = declared is not None and declared.origin is SecretOrigin.GCP
        reference = secret_reference(declared, project) if declared is not None and is_there else None
        if reference is None:
            raise SecretError(
                f"secret `{name}` cannot be given to a task on Cloud Run: its value would be visible there",
                hint=f"keep it in Secret Manager and declare `secrets: {{{name}: {{from: gcp}}}}` in ork.yaml",
            )
        return reference

    def own_value(self, name: str) -> str | None:
        """The value of a secret that ork.yaml itself uses, such as the address of an alert. It need not be declared."""
        declared = self._declared.get(name)
        if declared is None:
            return self._find(name)
        try:
            return self._read(declared, _command_seconds(declared))
        except SecretError:
            return None

    def found(self) -> frozenset[str]:
        """The names in `.env` and `.ork/secrets`, which need no declaration."""
        try:
            files = os.listdir(self._folder)
        except OSError:
            files = []
        names = {*self._read_env_file(self._env_file), *(name for name in files if not name.startswith("."))}
        return frozenset(name for name in names if not is_reserved(name))

    def missing(self) -> dict[str, str]:
        """Declared secrets without a value on this machine, with the reason. Commands are not run, nor services asked."""
        reasons = {}
        for name, secret in self._declared.items():
            if secret.origin not in _ELSEWHERE:
                try:
                    self._read(secret, 0.0)
                except SecretError as error:
                    reasons[name] = error.message
        return reasons

    def available_values(self, names: Iterable[str]) -> list[str]:
        """The values of these secrets that are available without running a command."""
        found = self.found()
        declared = {name for name, secret in self._declared.items() if secret.origin not in _ELSEWHERE}
        values = [self.own_value(name) for name in names if name in declared or name in found - self._declared.keys()]
        return [value for value in values if value]

    def _is_from_command(self, name: str, workflow: str) -> bool:
        declared = self._declared.get(name)
        return declared is not None and declared.origin is SecretOrigin.COMMAND and declared.is_for(workflow)

    def _run_commands(self, secrets: Collection[SecretDeclaration]) -> None:
        """Starts all commands before waiting for any."""
        until = time.monotonic()
        for seconds in (0.0, READY_SECONDS):
            for secret in secrets:
                with contextlib.suppress(SecretError):
                    self._read(secret, max(0.0, until + seconds - time.monotonic()))

    def _read(self, secret: SecretDeclaration, wait_seconds: float) -> str:
        return PROVIDERS[secret.origin](secret, self._context._replace(wait_seconds=wait_seconds))

    def _find(self, name: str) -> str | None:
        """From the environment, then the `.env` file, then `.ork/secrets/NAME`."""
        value = self._context.environ.get(name)
        if value is None:
            value = self._read_env_file(self._env_file).get(name)
        if value is not None or "/" in name or name.startswith("."):
            return value
        try:
            return read_secret_file(os.path.join(self._folder, name), f"secret `{name}`")
        except SecretError:
            return None


def _command_seconds(secret: SecretDeclaration) -> float:
    """Seconds after which the secret's command has ended or was killed."""
    return secret.timeout + 1.0
