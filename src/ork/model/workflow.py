"""What a workflow means once compiled: immutable, and equal whenever its content is equal."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from ork.model.ids import VersionId
from ork.model.infra import Resources
from ork.model.record import Record


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


class Isolation(StrEnum):
    """How the process of an attempt comes about on this machine."""

    FORK = "fork"  # a fork of a worker that has loaded what it needs
    INTERPRETER = "interpreter"  # an interpreter started for it
    SHARED = "shared"  # functions are called where others were before


class RetryOn(StrEnum):
    """Which ends of an attempt are worth another try."""

    EXIT = "exit"
    LOST = "lost"
    TIMEOUT = "timeout"


class OnUnreachable(StrEnum):
    """What becomes of an attempt whose machine no longer answers, once it must have ended itself."""

    RETRY = "retry"  # it is lost, and the retry rule decides
    FAIL = "fail"  # it is lost, and is not tried again
    WAIT = "wait"  # nothing, until its machine answers or a person declares it dead


class Catchup(StrEnum):
    NONE = "none"
    LAST = "last"
    ALL = "all"


class Op(StrEnum):
    """How `when` compares a value."""

    EQUALS = "equals"
    NOT_EQUALS = "not_equals"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"
    IN = "in"
    EXISTS = "exists"


class ParamType(StrEnum):
    """The types of single values. A param's type may be any other as well."""

    ANY = "any"
    STR = "str"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    DATE = "date"
    DATETIME = "datetime"


DEFAULT_RETRY_ON = frozenset({RetryOn.EXIT, RetryOn.LOST})


class Const(Record):
    """A JSON value, as written."""

    value: Any


class Ref(Record):
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


class Secret(Record):
    """The name of a secret; its value is looked up where the attempt starts and stored nowhere."""

    name: str


Value: TypeAlias = Const | Ref | Secret


class PythonCall(Record):
    """A function in a file (relative to the version's root) or in an importable module."""

    file: str | None
    module: str | None
    function: str = "main"


class Command(Record):
    """A program and its arguments. A bare first word is looked up in `script_dir`, then on PATH."""

    argv: tuple[Value, ...]


class RustProgram(Record):
    """A cargo project (its folder) or a single `.rs` file, built once per content and run as a command."""

    path: str
    args: tuple[Value, ...] = ()


class Custom(Record):
    """An executor of the project's own: a class (`package.module:Class`), its config, and the task's own config."""

    target: str
    config: Any = None  # from ork.yaml, the same for all tasks of this executor
    task: Any = None  # from the task's `config` or `config_file`


class Container(Record):
    """The image's own program, or `argv` instead; nothing of Ork in it. Input and output are files in it, if named."""

    argv: tuple[Value, ...] = ()
    to_file: str | None = None
    from_file: str | None = None


class SubWorkflow(Record):
    """Another workflow, run with the task's inputs as its params; its output is that of its last tasks."""

    name: str


class NotBy(StrEnum):
    STARTER = "starter"  # whoever started the run


class Approval(Record):
    """A person decides. Nothing runs while it waits; the task's timeout is how long."""

    message: str
    not_by: NotBy | None = None  # who may not approve it


Action: TypeAlias = PythonCall | Command | RustProgram | Container | Custom | SubWorkflow | Approval


class Condition(Record):
    """`when`: compares the value a reference points at; a value that is not there only ever fails EXISTS' opposite."""

    ref: Ref
    op: Op
    value: Any

    def __str__(self) -> str:
        return f"{self.ref} {self.op} {self.value!r}"


class Rate(Record):
    """At most `count` starts in any `seconds`, with bursts up to `count`."""

    count: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.count}/{self.seconds:g}s"


class Environment(Record):
    """The Python a task runs in: a virtual environment's folder, or requirements one is built from, once per content.

    Exactly one of the fields is set. `script` means the requirements in the task file's own header (PEP 723).
    """

    path: str | None = None
    requirements: tuple[str, ...] = ()
    requirements_file: str | None = None
    script: bool = False


class Param(Record):
    name: str
    type: str = ParamType.ANY  # as text, see ork.model.type_text; a ParamType where it is a single value
    required: bool = True
    default: Any = None
    description: str | None = None
    sensitive: bool = False  # stored encrypted, shown as •••, masked in logs


class Schedule(Record):
    cron: str
    timezone: str = "UTC"
    catchup: Catchup = Catchup.NONE
    enabled: bool = True
    jitter: float = 0.0  # seconds over which workflows with the same times are spread
    catchup_limit: int = 100  # at most so many missed times get a run at once, the newest of them


class TaskSpec(Record):
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
    when: tuple[Condition, ...] = ()
    parallel: int | Ref | None = None
    foreach: Const | Ref | None = None
    concurrency: int | None = None
    cache: float | None = None  # seconds for which an equal earlier result is good enough
    rate: Rate | None = None
    environment: Environment | None = None
    isolation: Isolation | None = None  # None: as the project says
    image: str | None = None  # what it runs in; whoever is not a `Container` gets a worker in there
    worker: str | None = None  # a name from workers.yaml
    resources: Resources | None = None  # no more than the worker config allows
    input_types: tuple[tuple[str, str], ...] = ()  # declared types as text, see ork.model.type_text
    output_type: str | None = None
    on_unreachable: OnUnreachable = OnUnreachable.RETRY

    @property
    def fans_out(self) -> bool:
        return self.parallel is not None or self.foreach is not None


class CompiledWorkflow(Record):
    """`tasks` are in the order they were written; the graph has been checked and has no cycle."""

    name: str
    tasks: tuple[TaskSpec, ...]
    description: str | None = None
    params: tuple[Param, ...] = ()
    schedule: Schedule | None = None
    max_active_runs: int | None = None
    fail_fast: bool = False
    alerts: tuple[str, ...] = ()
    types: tuple[tuple[str, Any], ...] = ()  # named types as JSON, see ork.model.types
    project: str | None = None  # the project's folder as seen from the workflow's; None: the same one
    pythonpath: tuple[str, ...] = ()  # more folders to import from, as seen from the project's


class Version(Record):
    """A compiled workflow and the folder its files are found in. The id is a hash of both."""

    id: VersionId
    workflow: CompiledWorkflow
    root: str
    source: str | None = None  # the file it was deployed from, for people


class WorkflowEntry(Record):
    """A named workflow in the store and the version new runs of it get."""

    name: str
    version: VersionId
    enabled: bool
    deployed_at: datetime
    origin: str | None
    schedule: Schedule | None
    unreadable: str | None = None  # why parts of its row cannot be decoded; a damaged schedule counts as none


class VersionEntry(Record):
    """A version in the list of a workflow's versions. `saved_at` is unknown for those of an older schema."""

    id: VersionId
    saved_at: datetime | None
    source: str | None
