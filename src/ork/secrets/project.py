"""The secrets of one project: those that its ork.yaml declares, and the names in `.env` and `.ork/secrets`."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping

from ork.errors import SecretError, UndeclaredSecretError
from ork.model.secret import SecretDeclaration, SecretOrigin, declaration_lines, is_reserved
from ork.secrets.providers import PROVIDERS, Surroundings, read_secret_file

READY_SECONDS = 2.0  # how long commands may hold up the launch of others
ReadEnvFile = Callable[[str], dict[str, str]]


class ProjectSecrets:
    def __init__(
        self,
        declared: Mapping[str, SecretDeclaration],
        around: Surroundings,
        env_file: str,
        folder: str,
        read_env_file: ReadEnvFile,
    ) -> None:
        self._declared = declared
        self._has_commands = any(secret.origin is SecretOrigin.COMMAND for secret in declared.values())
        self._around = around
        self._env_file = env_file
        self._folder = folder
        self._read_env_file = read_env_file

    async def ready(self, wanted: Iterable[tuple[str, str]]) -> None:
        """Starts the commands of these secrets (name and workflow) and waits a moment, so that their values are at hand."""
        if not self._has_commands:  # then nothing is looked for
            return
        declared = {self._declared[name] for name, workflow in wanted if self._is_from_command(name, workflow)}
        if declared:
            import asyncio

            await asyncio.to_thread(self._run_commands, declared)

    def value(self, name: str, workflow: str, *, waits: bool = False) -> str:
        """For a task of the workflow. UndeclaredSecretError if the project does not give it that secret.

        SecretNotYetError if its command has not ended; with `waits`, that is waited for.
        """
        if is_reserved(name):
            raise UndeclaredSecretError(
                f"`{name}` is reserved for Ork and never passed to a task", hint="name another secret"
            )
        declared = self._declared.get(name)
        if declared is not None and not declared.is_for(workflow):
            raise UndeclaredSecretError(
                f"ork.yaml does not give secret `{name}` to workflow `{workflow}`",
                hint=f"add {workflow} to `workflows` of secrets.{name} in ork.yaml",
            )
        if declared is not None:
            return self._provided(declared, _enough(declared) if waits else 0.0)
        if name not in self.found():
            raise UndeclaredSecretError(
                f"the project declares no secret `{name}`",
                hint=f"add `{declaration_lines(name)}` to ork.yaml, or a line {name}=… to .env",
            )
        value = self._looked_up(name)
        if value is None:
            raise SecretError(f"there is no secret `{name}` in the environment, .env or .ork/secrets")
        return value

    def own_value(self, name: str) -> str | None:
        """For what ork.yaml itself names, such as the address of an alert: declared or not, also from the environment."""
        declared = self._declared.get(name)
        if declared is None:
            return self._looked_up(name)
        try:
            return self._provided(declared, _enough(declared))
        except SecretError:
            return None

    def found(self) -> frozenset[str]:
        """Names that need no declaration: those in `.env` and `.ork/secrets`."""
        try:
            files = os.listdir(self._folder)
        except OSError:
            files = []
        names = {*self._read_env_file(self._env_file), *(name for name in files if not name.startswith("."))}
        return frozenset(name for name in names if not is_reserved(name))

    def missing(self) -> dict[str, str]:
        """Declared secrets that have no value here, with the reason. Commands are not run to find out."""
        reasons = {}
        for name, secret in self._declared.items():
            if secret.origin is not SecretOrigin.COMMAND:
                try:
                    self._provided(secret, 0.0)
                except SecretError as error:
                    reasons[name] = error.message
        return reasons

    def values_at_hand(self, names: Iterable[str]) -> list[str]:
        """The values of these secrets, as far as they can be had without running a command."""
        found = self.found()
        declared = {name for name, secret in self._declared.items() if secret.origin is not SecretOrigin.COMMAND}
        values = [self.own_value(name) for name in names if name in declared or name in found - self._declared.keys()]
        return [value for value in values if value]

    def _is_from_command(self, name: str, workflow: str) -> bool:
        declared = self._declared.get(name)
        return declared is not None and declared.origin is SecretOrigin.COMMAND and declared.is_for(workflow)

    def _run_commands(self, secrets: Collection[SecretDeclaration]) -> None:
        """All are started before any is waited for."""
        until = time.monotonic()
        for seconds in (0.0, READY_SECONDS):
            for secret in secrets:
                with contextlib.suppress(SecretError):
                    self._provided(secret, max(0.0, until + seconds - time.monotonic()))

    def _provided(self, secret: SecretDeclaration, patience: float) -> str:
        return PROVIDERS[secret.origin](secret, self._around._replace(patience=patience))

    def _looked_up(self, name: str) -> str | None:
        """From the environment, then the `.env` file, then `.ork/secrets/NAME`."""
        value = self._around.environ.get(name)
        if value is None:
            value = self._read_env_file(self._env_file).get(name)
        if value is not None or "/" in name or name.startswith("."):
            return value
        try:
            return read_secret_file(os.path.join(self._folder, name), f"secret `{name}`")
        except SecretError:
            return None


def _enough(secret: SecretDeclaration) -> float:
    """Seconds after which its command has ended or was ended."""
    return secret.timeout + 1.0
