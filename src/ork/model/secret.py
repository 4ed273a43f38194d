"""A secret as declared in ork.yaml: where its value comes from, and which workflows may use it. Never the value."""

from __future__ import annotations

from enum import StrEnum

from ork.model.record import Record
from ork.model.trees import pointers
from ork.model.workflow import Custom, Secret, TaskSpec, Value

OWN_PREFIX = "ORK_"  # reserved for Ork: tokens, addresses, hook secrets


class SecretOrigin(StrEnum):
    """The allowed values of `from`."""

    ENV = "env"
    FILE = "file"
    COMMAND = "command"


class SecretDeclaration(Record):
    """`variable`, `path` or `argv` is set, depending on the origin. `workflows` holds names and patterns; None means
    all."""

    name: str
    origin: SecretOrigin
    variable: str | None = None
    path: str | None = None
    argv: tuple[str, ...] = ()
    timeout: float = 10.0
    workflows: tuple[str, ...] | None = None

    def is_for(self, workflow: str) -> bool:
        from fnmatch import fnmatchcase

        return self.workflows is None or any(fnmatchcase(workflow, pattern) for pattern in self.workflows)


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
