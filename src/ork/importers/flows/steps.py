"""What calls of tasks yield while a flow is followed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ork.importers.project import SourcePlace
from ork.importers.python.values import Module, SourceFunction


@dataclass(eq=False)
class StepFunction:
    """A function with the decorator of a task, and the decorator's arguments."""

    function: SourceFunction
    keywords: dict[str, Any]
    kind: str


@dataclass(eq=False)
class FlowFunction:
    """A function with the decorator of a flow or job."""

    function: SourceFunction
    keywords: dict[str, Any]
    kind: str

    @property
    def name(self) -> str:
        given = self.keywords.get("name")
        return given if isinstance(given, str) else self.function.name


@dataclass(eq=False)
class Step:
    """One call of a task in a flow."""

    name: str
    kind: str
    place: SourcePlace
    target: StepFunction | FlowFunction
    args: list[Any] = field(default_factory=list)
    keywords: dict[str, Any] = field(default_factory=dict)
    mapped: set[str] = field(default_factory=set)  # parameters whose values are mapped over
    after: list[Step] = field(default_factory=list)
    problem: str | None = None


@dataclass(frozen=True)
class StepOutput:
    step: Step
    path: tuple[str | int, ...] = ()


@dataclass(frozen=True)
class FlowParam:
    name: str


@dataclass(frozen=True)
class Unmapped:
    value: Any


@dataclass(eq=False)
class ImportedFlow:
    """A followed flow: its steps, in the order of their calls."""

    target: FlowFunction
    module: Module
    place: SourcePlace
    steps: list[Step] = field(default_factory=list)
    problems: list[tuple[str, SourcePlace]] = field(default_factory=list)


def step_outputs_in(value: Any) -> list[StepOutput]:
    """All outputs of steps inside a value."""
    if isinstance(value, StepOutput):
        return [value]
    if isinstance(value, Unmapped):
        return step_outputs_in(value.value)
    if isinstance(value, dict):
        return [found for item in value.values() for found in step_outputs_in(item)]
    if isinstance(value, list | tuple):
        return [found for item in value for found in step_outputs_in(item)]
    return []
