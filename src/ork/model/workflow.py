"""What a workflow means once compiled: immutable, and equal whenever its content is equal."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from ork.model.ids import VersionId


class Trigger(StrEnum):
    """Who asked for a run."""

    MANUAL = "manual"
    SCHEDULE = "schedule"
    BACKFILL = "backfill"
    EVENT = "event"


class RunIf(StrEnum):
    """When a task may start, judged once every upstream task has ended."""

    ALL_SUCCESS = "all_success"
    ALL_DONE = "all_done"
    ANY_FAILED = "any_failed"
    ANY_SUCCESS = "any_success"
    ALWAYS = "always"


class RetryOn(StrEnum):
    """Which ends of an attempt are worth another try."""

    EXIT = "exit"
    LOST = "lost"
    TIMEOUT = "timeout"


class Catchup(StrEnum):
    NONE = "none"
    LAST = "last"
    ALL = "all"


class ParamType(StrEnum):
    ANY = "any"
    STR = "str"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    DATE = "date"
    DATETIME = "datetime"


DEFAULT_RETRY_ON = frozenset({RetryOn.EXIT, RetryOn.LOST})


@dataclass(frozen=True, slots=True)
class Const:
    """A JSON value, as written."""

    value: Any


@dataclass(frozen=True, slots=True)
class Ref:
    """A path to a value that exists only when the task starts, e.g. ("tasks", "extract", "output", "rows", 0)."""

    path: tuple[str | int, ...]

    @property
    def task(self) -> str | None:
        """The upstream task this ref makes a dependency, if it points at one."""
        return str(self.path[1]) if self.path[0] == "tasks" else None

    def __str__(self) -> str:
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
        return text


@dataclass(frozen=True, slots=True)
class Secret:
    """The name of a secret; its value is looked up where the attempt starts and stored nowhere."""

    name: str


Value: TypeAlias = Const | Ref | Secret


@dataclass(frozen=True, slots=True)
class PythonCall:
    """A function in a file (relative to the version's root) or in an importable module."""

    file: str | None
    module: str | None
    function: str = "main"


@dataclass(frozen=True, slots=True)
class Command:
    """A program and its arguments. A bare first word is looked up in `script_dir`, then on PATH."""

    argv: tuple[Value, ...]


Action: TypeAlias = PythonCall | Command


@dataclass(frozen=True, slots=True)
class Param:
    name: str
    type: ParamType = ParamType.ANY
    required: bool = True
    default: Any = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    cron: str
    timezone: str = "UTC"
    catchup: Catchup = Catchup.NONE
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """One node of the graph. `depends_on` holds written and implied dependencies, each once."""

    name: str
    executor: str
    action: Action
    depends_on: tuple[str, ...] = ()
    inputs: tuple[tuple[str, Value], ...] = ()
    env: tuple[tuple[str, Value], ...] = ()
    retries: int = 0
    retry_delay: float | None = None
    retry_on: frozenset[RetryOn] = DEFAULT_RETRY_ON
    timeout: float | None = None
    pool: str | None = None
    priority: int = 0
    run_if: RunIf = RunIf.ALL_SUCCESS


@dataclass(frozen=True, slots=True)
class CompiledWorkflow:
    """`tasks` are in the order they were written; the graph has been checked and has no cycle."""

    name: str
    tasks: tuple[TaskSpec, ...]
    description: str | None = None
    params: tuple[Param, ...] = ()
    schedule: Schedule | None = None
    max_active_runs: int | None = None
    fail_fast: bool = False
    alerts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Version:
    """A compiled workflow and the folder its files are found in. The id is a hash of both."""

    id: VersionId
    workflow: CompiledWorkflow
    root: str
    source: str | None = None  # the file it was deployed from, for people


@dataclass(frozen=True, slots=True)
class WorkflowEntry:
    """A named workflow in the store and the version new runs of it get."""

    name: str
    version: VersionId
    enabled: bool
    deployed_at: datetime
    origin: str | None
    schedule: Schedule | None
