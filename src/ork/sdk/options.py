"""The options of tasks and workflows, for type checkers and editors; not imported at run time.

The keys are those of a YAML file. Their values are defined once, in `ork.definition`, for YAML and Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Literal, TypedDict

Duration = float | str | timedelta
Path = str | dict[str, str]
Task = str | Callable[..., Any]


class DefaultOptions(TypedDict, total=False):
    """Options that a workflow may set for all its tasks."""

    executor: str
    env: dict[str, Any]
    retries: int
    retry_delay: Duration
    retry_on: str | Sequence[Literal["exit", "lost", "timeout"]]
    on_unreachable: Literal["retry", "fail", "wait"]
    timeout: Duration
    pool: str
    priority: int
    environment: Any
    worker: str
    isolation: Literal["fork", "interpreter", "shared"]


class TaskOptions(DefaultOptions, total=False):
    """All keys of a task except its action."""

    depends_on: Task | Sequence[Task]
    inputs: dict[str, Any]
    run_if: Literal["all_success", "all_done", "any_failed", "any_success", "always"]
    when: dict[str, Any] | Sequence[dict[str, Any]]
    parallel: int | Path
    foreach: Sequence[Any] | Path | Callable[..., Any]
    concurrency: int
    cache: Duration
    rate: str | dict[str, float]
    input_type: Any
    output_type: Any
    image: str
    input: dict[str, str]
    output: dict[str, str]
    resources: dict[str, float | str]
    config: Any
    config_file: str


class WorkflowOptions(TypedDict, total=False):
    """All keys of a workflow except its name and tasks."""

    description: str
    params: dict[str, Any]
    defaults: DefaultOptions
    max_active_runs: int
    fail_fast: bool
    budget: dict[str, Any]
    alerts: str | Sequence[str]
    types: dict[str, Any]
    environment: Any
