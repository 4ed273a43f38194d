"""A secret as ork.yaml declares it: where its value comes from, and which workflows may use it. Never the value itself."""

from __future__ import annotations

from enum import StrEnum

from ork.model.record import Record
from ork.model.trees import pointers
from ork.model.workflow import Custom, Secret, TaskSpec, Value

OWN_PREFIX = "ORK_"  # variables of Ork itself: tokens, addresses, hook secrets


class SecretOrigin(StrEnum):
    """What `from` may say."""

    ENV = "env"
    FILE = "file"
    COMMAND = "command"


class SecretDeclaration(Record):
    """`variable`, `path` or `argv`, as its origin needs. `workflows` holds names and patterns; None: all."""

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


def is_of_ork(name: str) -> bool:
    """Names that no task is ever given as a secret."""
    return name.upper().startswith(OWN_PREFIX)


def lines_to_add(name: str) -> str:
    """What to write into ork.yaml to declare the secret."""
    return f"secrets: {{{name}: {{from: env}}}}"


def named_secrets(spec: TaskSpec) -> tuple[str, ...]:
    """The secrets that the task's definition names, each once."""
    action = spec.action
    if not (spec.inputs or spec.env or isinstance(action, Custom)):
        return ()
    values: list[Value] = [value for _, value in (*spec.inputs, *spec.env)]
    if isinstance(action, Custom):
        values += [value for tree in (action.config, action.task) for value, _ in pointers(tree)]
    return tuple(dict.fromkeys(value.name for value in values if isinstance(value, Secret)))
