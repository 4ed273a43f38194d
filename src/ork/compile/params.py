"""The params of a run: text from a command line to values, and values against what the workflow declares."""

from __future__ import annotations

import json
from typing import Any

from ork.definition.param_types import WrongTypeError, fit, type_in_words
from ork.definition.problems import quoted
from ork.definition.report import Suggester
from ork.errors import UsageError
from ork.model.workflow import CompiledWorkflow, Param, ParamType

_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parse_param(param: Param, text: str) -> Any:
    """What a person typed, by the param's type. Without a type it is JSON, or text where it is not."""
    try:
        return fit(param.type, _typed(param.type, text))
    except (WrongTypeError, ValueError):
        message = f"param {quoted(param.name)}: {quoted(text)} is not {type_in_words(param.type)}"
        raise UsageError(message, code="ORK403") from None


def parse_params(workflow: CompiledWorkflow, given: dict[str, str]) -> dict[str, Any]:
    """Typed values with defaults filled in. An unknown name is left to `check_params` to refuse."""
    declared = {param.name: param for param in workflow.params}
    values = {name: parse_param(declared[name], text) if name in declared else text for name, text in given.items()}
    return check_params(workflow, values)


def check_params(workflow: CompiledWorkflow, given: dict[str, Any]) -> dict[str, Any]:
    """The params of a run with defaults filled in, or a UsageError that names everything that is wrong."""
    declared = {param.name: param for param in workflow.params}
    wrong = [_unknown(workflow, name, declared) for name in given if name not in declared]
    values: dict[str, Any] = {}
    for name, param in declared.items():
        if name not in given:
            if param.required:
                wrong.append(f"param {quoted(name)} is missing")
            values[name] = param.default
            continue
        try:
            # Null is a value where the workflow itself says so.
            optional = given[name] is None and not param.required and param.default is None
            values[name] = None if optional else fit(param.type, given[name])
        except WrongTypeError as error:
            wrong.append(f"param {quoted(name)}: {quoted(_shown(given[name]))} {error}")
    if wrong:
        raise UsageError("; ".join(wrong), code="ORK403", hint=_hint(workflow))
    return values


def _typed(param_type: ParamType, text: str) -> Any:
    if param_type is ParamType.BOOL:
        return _BOOLEANS.get(text.strip().lower())
    if param_type is ParamType.INT:
        return int(text)
    if param_type is ParamType.FLOAT:
        return _finite(text)
    return _json_or_text(text) if param_type is ParamType.ANY else text


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return text


def _refuse_constant(text: str) -> Any:
    raise ValueError(text)


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0:  # true of infinities and of what is not a number
        raise ValueError(text)
    return number


def _unknown(workflow: CompiledWorkflow, name: str, declared: dict[str, Param]) -> str:
    if not declared:
        return f"workflow {quoted(workflow.name)} takes no params, and was given {quoted(name)}"
    suggestion = Suggester(declared).hint(name)
    return f"there is no param {quoted(name)}" + (f" ({suggestion})" if suggestion else "")


def _hint(workflow: CompiledWorkflow) -> str | None:
    if not workflow.params:
        return None
    return "params: " + ", ".join(_described(param) for param in workflow.params)


def _described(param: Param) -> str:
    return f"{param.name} ({param.type.value}{'' if param.required else ', optional'})"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
