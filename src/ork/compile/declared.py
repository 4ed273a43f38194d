"""The types that a task declares, as JSON: for checks by the worker and for validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ork.model.type_text import parse_type
from ork.model.types import WHOLE_INPUT
from ork.model.workflow import CompiledWorkflow, TaskSpec

if TYPE_CHECKING:
    from ork.model.types import TypeJson


def declared_input(spec: TaskSpec) -> TypeJson | None:
    """The type of the task's whole input. A type per name becomes an object with those fields."""
    types = {name: parse_type(text) for name, text in spec.input_types}
    return types.get(WHOLE_INPUT, {"object": types}) if types else None


def declared_types(spec: TaskSpec, workflow: CompiledWorkflow) -> dict[str, Any]:
    """The declared types in an attempt's spec."""
    output = None if spec.output_type is None else parse_type(spec.output_type)
    return {"input_type": declared_input(spec), "output_type": output, "types": dict(workflow.types)}
