"""Strict validation: every value passed between tasks must have a type."""

from __future__ import annotations

from ork.compile.described import FunctionSignature, UninspectedFunction
from ork.definition.problems import quoted
from ork.definition.report import ProblemReport
from ork.definition.tasks import ParsedTask
from ork.model.types import WHOLE_INPUT
from ork.model.workflow import Approval, PythonCall, SubWorkflow, TaskSpec


def check_strictly(
    report: ProblemReport, parsed: ParsedTask, spec: TaskSpec, function: FunctionSignature | UninspectedFunction | None
) -> None:
    """Add a problem for each value without a type."""
    if isinstance(spec.action, Approval):
        return
    signature = function if isinstance(function, FunctionSignature) else None
    untyped = _untyped_inputs(spec, signature)
    lacks_output = spec.output_type is None and (signature is None or signature.returns is None)
    if isinstance(spec.action, PythonCall) and isinstance(function, UninspectedFunction):
        if untyped or lacks_output:
            message = f"task {quoted(spec.name)}: the types of its function cannot be read: {function.why}"
            report.add("ORK408", message, parsed.key, hint="add `input_type:` and `output_type:`")
        return
    if untyped:
        names = ", ".join(map(quoted, untyped))
        message = f"task {quoted(spec.name)}: there is no type for {names}"
        report.add("ORK407", message, parsed.key, hint=_hint("input_type", signature))
    if lacks_output:
        message = f"task {quoted(spec.name)}: there is no type for its output"
        report.add("ORK407", message, parsed.key, hint=_hint("output_type", signature))


def _untyped_inputs(spec: TaskSpec, signature: FunctionSignature | None) -> list[str]:
    declared = dict(spec.input_types)
    if WHOLE_INPUT in declared or isinstance(spec.action, SubWorkflow):
        return []  # the params of a workflow have their own types
    if signature is not None:
        wanted = [each.name for each in signature.parameters.values() if each.type is None]
    else:
        wanted = [name for name, _ in spec.inputs] or list(spec.depends_on)
    return [name for name in wanted if name not in declared]


def _hint(key: str, signature: FunctionSignature | None) -> str:
    return f"annotate the function at {signature.position}, or add `{key}:`" if signature else f"add `{key}:`"
