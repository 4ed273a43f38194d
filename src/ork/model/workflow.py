"""A compiled workflow: immutable, and equal if its content is equal."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from ork.model.code import Code
from ork.model.ids import VersionId
from ork.model.infra import Resources
from ork.model.record import Record


class Trigger(StrEnum):
    """What started a run."""

    MANUAL = "manual"
    SCHEDULE = "schedule"
    BACKFILL = "backfill"
    EVENT = "event"


class RunIf(StrEnum):
    """When a task may start, given how its upstream tasks ended."""

    ALL_SUCCESS = "all_success"
    ALL_DONE = "all_done"
    ANY_FAILED = "any_failed"
    ANY_SUCCESS = "any_success"
    ALWAYS = "always"


class Isolation(StrEnum):
    """How the process of an attempt is created on this machine."""

    FORK = "fork"  # forked from a worker that has loaded its imports
    INTERPRETER = "interpreter"  # a new interpreter
    SHARED = "shared"  # a process that runs several functions, one after another


class RetryOn(StrEnum):
    """Which failures are retried."""

    EXIT = "exit"
    LOST = "lost"
    TIMEOUT = "timeout"


class OnUnreachable(StrEnum):
    """What happens to an attempt whose machine does not answer, once its fence time has passed."""

    RETRY = "retry"  # it counts as lost, and the retry rule decides
    FAIL = "fail"  # it counts as lost, and is not retried
    WAIT = "wait"  # nothing, until its machine answers or a person declares it dead


class Catchup(StrEnum):
    NONE = "none"
    LAST = "last"
    ALL = "all"


class Op(StrEnum):
    """The comparisons of `when`."""

    EQUALS = "equals"
    NOT_EQUALS = "not_equals"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"
    IN = "in"
    EXISTS = "exists"


class OnExceed(StrEnum):
    """What happens when the estimated cost of a run exceeds its budget. People are alerted either way."""

    ALERT = "alert"
    CANCEL = "cancel"


class ParamType(StrEnum):
    """The types of scalar values. A param may have other types as well."""

    ANY = "any"
    STR = "str"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    DATE = "date"
    DATETIME = "datetime"


DEFAULT_RETRY_ON = frozenset({RetryOn.EXIT, RetryOn.LOST})


class Const(Record):
    """A JSON value."""

    value: Any


class Ref(Record):
    """A path to a value known only when the task starts, e.g. ("tasks", "extract", "output", "rows", 0)."""

    path: tuple[str | int, ...]
    as_file: bool = False  # the task gets the path of a file with the value

    @property
    def task(self) -> str | None:
        """The upstream task that this reference depends on, if any."""
        return str(self.path[1]) if self.path[0] == "tasks" else None

    def __str__(self) -> str:
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
        return text


class Secret(Record):
    """The name of a secret. Its value is resolved at launch and never stored."""

    name: str


Value: TypeAlias = Const | Ref | Secret


class PythonCall(Record):
    """A function in a file (relative to the version's root) or in an importable module."""

    file: str | None
    module: str | None
    function: str = "main"


class Command(Record):
    """A program and its arguments. A bare program name is looked up in `script_dir`, then on PATH. `from_file`: the file in
    $ORK_OUTPUT_DIR that it leaves as its output."""

    argv: tuple[Value, ...]
    from_file: str | None = None


class RustProgram(Record):
    """A cargo project (its folder) or a single `.rs` file, built once per content and run as a command."""

    path: str
    args: tuple[Value, ...] = ()


class Custom(Record):
    """A custom executor of the project: a class (`package.module:Class`), its config, and the task's config."""

    target: str
    config: Any = None  # from ork.yaml, shared by all tasks of this executor
    task: Any = None  # from the task's `config` or `config_file`


class Container(Record):
    """The image's own program, or `argv` instead, without a worker. Input and output are files in the container, if
    named."""

    argv: tuple[Value, ...] = ()
    to_file: str | None = None
    from_file: str | None = None


class CloudRunJob(Record):
    """A Cloud Run Job that exists: its name, or projects/P/locations/R/jobs/NAME. `args` replace its arguments, if there are any."""

    job: str
    args: tuple[Value, ...] = ()


class SubWorkflow(Record):
    """Another workflow, run with the task's inputs as params. Its output is that of its last tasks."""

    name: str


class NotBy(StrEnum):
    STARTER = "starter"  # the person who started the run


class Approval(Record):
    """A person decides. Nothing runs meanwhile; the task's timeout limits the wait."""

    message: str
    not_by: NotBy | None = None  # who must not approve it


Action: TypeAlias = PythonCall | Command | RustProgram | Container | CloudRunJob | Custom | SubWorkflow | Approval


class Condition(Record):
    """One entry of `when`: compares the value of a reference. A missing value satisfies only `exists: false` and
    `not_equals`."""

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
    """The Python environment of a task: a virtual environment's folder, or requirements to build one from, once per
    content.

    Exactly one field is set. `script` uses the requirements in the task file's own header (PEP 723).
    """

    path: str | None = None
    requirements: tuple[str, ...] = ()
    requirements_file: str | None = None
    script: bool = False


class Param(Record):
    name: str
    type: str = ParamType.ANY  # as text, see ork.model.type_text; a ParamType if scalar
    required: bool = True
    default: Any = None
    description: str | None = None
    sensitive: bool = False  # stored encrypted, shown as •••, masked in logs


class Schedule(Record):
    cron: str
    timezone: str = "UTC"
    catchup: Catchup = Catchup.NONE
    enabled: bool = True
    jitter: float = 0.0  # seconds over which workflows with the same schedule are spread
    catchup_limit: int = 100  # maximum number of missed times that get a run at once, newest first


class Budget(Record):
    """US dollars that a run may cost by estimate, and what happens when it costs more."""

    usd: float
    on_exceed: OnExceed = OnExceed.ALERT


class TaskSpec(Record):
    """One node of the graph. `depends_on` holds explicit and implied dependencies, without duplicates."""

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
    cache: float | None = None  # maximum age in seconds of an equal result to reuse
    rate: Rate | None = None
    environment: Environment | None = None
    isolation: Isolation | None = None  # None: the project's setting
    image: str | None = None  # the image it runs in; any action but `Container` needs a worker there
    worker: str | None = None  # a name from workers.yaml
    resources: Resources | None = None  # at most what the worker config allows
    input_types: tuple[tuple[str, str], ...] = ()  # declared types as text, see ork.model.type_text
    output_type: str | None = None
    on_unreachable: OnUnreachable = OnUnreachable.RETRY

    @property
    def fans_out(self) -> bool:
        return self.parallel is not None or self.foreach is not None


class CompiledWorkflow(Record):
    """`tasks` are in source order. The graph was checked and has no cycle."""

    name: str
    tasks: tuple[TaskSpec, ...]
    description: str | None = None
    params: tuple[Param, ...] = ()
    schedule: Schedule | None = None
    max_active_runs: int | None = None
    fail_fast: bool = False
    alerts: tuple[str, ...] = ()
    types: tuple[tuple[str, Any], ...] = ()  # named types as JSON, see ork.model.types
    project: str | None = None  # the project's folder relative to the workflow's; None if equal
    pythonpath: tuple[str, ...] = ()  # further folders to import from, relative to the project's
    budget: Budget | None = None
    codecs: tuple[tuple[str, str], ...] = ()  # classes that store values of the project's own types, by name


class Version(Record):
    """A compiled workflow, the folder of its files, and their code. The id is a hash of these three."""

    id: VersionId
    workflow: CompiledWorkflow
    root: str
    source: str | None = None  # the file it was deployed from, for display
    code: Code | None = None  # None: of an older release, in an image, or too many files


class WorkflowEntry(Record):
    """A workflow in the store, with the version that new runs use."""

    name: str
    version: VersionId
    enabled: bool
    deployed_at: datetime
    origin: str | None
    schedule: Schedule | None
    unreadable: str | None = None  # why parts of its row cannot be decoded; a damaged schedule counts as none


class VersionEntry(Record):
    """A version in the list of a workflow's versions. `saved_at` is None for versions of an older schema."""

    id: VersionId
    saved_at: datetime | None
    source: str | None
