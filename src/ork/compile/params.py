"""The params of a run: parses text from the command line, and checks values against the declared params."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ork.definition.param_types import WrongTypeError, fit, type_in_words
from ork.definition.problems import quoted
from ork.definition.report import Suggester
from ork.errors import UsageError
from ork.model.secret import SHOWN, is_sealed
from ork.model.value_reference import MARK, has_mark
from ork.model.workflow import CompiledWorkflow, Param, ParamType

if TYPE_CHECKING:
    from ork.model.types import Names

_TEXT_TYPES = (ParamType.STR, ParamType.DATE, ParamType.DATETIME)
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parse_param(param: Param, text: str, types: Names | None = None) -> Any:
    """Parse text by the param's type. Without a type it is JSON, or a string if it is not valid JSON."""
    try:
        return _typed(param.type, text, types)
    except (WrongTypeError, ValueError) as error:
        place = f" {error.place}" if isinstance(error, WrongTypeError) and error.place else ""
        shown = SHOWN if param.sensitive else text
        message = f"param {quoted(param.name)}: {quoted(shown)} is not {type_in_words(param.type)}{place}"
        raise UsageError(message, code="ORK403") from None


def parse_params(
    workflow: CompiledWorkflow, given: dict[str, str], kept: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Typed values with defaults. Raises UsageError naming all mistakes.

    `kept` holds the params of an earlier run, for those that are not given.
    """
    declared = {param.name: param for param in workflow.params}
    types = dict(workflow.types)
    values: dict[str, Any] = dict(kept or {})
    unreadable: dict[str, str] = {}
    for name, text in given.items():
        try:
            values[name] = parse_param(declared[name], text, types) if name in declared else text
        except UsageError as error:
            unreadable[name] = error.message
    return check_params(workflow, values, unreadable)


def check_params(
    workflow: CompiledWorkflow,
    given: dict[str, Any],
    unreadable: Mapping[str, str] | None = None,
    *,
    may_refer: bool = False,
) -> dict[str, Any]:
    """The params of a run with defaults. Raises UsageError naming all mistakes.

    `unreadable` has the error of each param whose text could not be parsed. `may_refer`: they come from a task, and may have
    references to values that are not JSON.
    """
    declared = {param.name: param for param in workflow.params}
    types = dict(workflow.types)
    unreadable = unreadable or {}
    wrong = [_unknown(workflow, name, declared) for name in given if name not in declared]
    wrong += unreadable.values()
    values: dict[str, Any] = {}
    for name, param in declared.items():
        if name in unreadable:
            continue
        if name not in given:
            if param.required:
                wrong.append(f"param {quoted(name)} is missing{_misspelt_task_hint(workflow, name)}")
            values[name] = param.default
            continue
        if is_sealed(given[name]):  # from an earlier run, or forged
            if not param.sensitive:
                wrong.append(f"param {quoted(name)}: objects with `$sealed` are reserved for Ork")
            values[name] = given[name]
            continue
        if has_mark(given[name]):
            if not may_refer:
                wrong.append(f"param {quoted(name)}: objects with `{MARK}` are reserved for Ork")
            values[name] = given[name]
            continue
        try:
            # Null is allowed if it is the declared default.
            optional = given[name] is None and not param.required and param.default is None
            values[name] = None if optional else fit(param.type, given[name], types)
        except WrongTypeError as error:
            shown = SHOWN if param.sensitive else _shown(given[name])
            wrong.append(f"param {quoted(name)}: {quoted(shown)} {error}")
    if wrong:
        raise UsageError("; ".join(wrong), code="ORK403", hint=_hint(workflow))
    return values


def _typed(param_type: str, text: str, types: Names | None) -> Any:
    if param_type == ParamType.BOOL:
        return fit(param_type, _BOOLEANS.get(text.strip().lower()))
    if param_type == ParamType.INT:
        return fit(param_type, int(text))
    if param_type == ParamType.FLOAT:
        return fit(param_type, _finite(text))
    if param_type in _TEXT_TYPES:
        return fit(param_type, text)
    value = _json_or_text(text)
    try:
        return fit(param_type, value, types)
    except WrongTypeError as error:
        with suppress(WrongTypeError):
            return fit(param_type, text, types)  # a string that happens to be JSON: `-p zip=12345` for a `str?`
        raise error


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return text


def _refuse_constant(text: str) -> Any:
    raise ValueError(text)


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0:  # infinity or NaN
        raise ValueError(text)
    return number


def _misspelt_task_hint(workflow: CompiledWorkflow, name: str) -> str:
    """A hint for a misspelt task: a function parameter becomes a run param if no task has its name."""
    task = Suggester([spec.name for spec in workflow.tasks]).closest(name)
    return f" (if the output of task {quoted(task)} was meant, rename the function's parameter to that)" if task else ""


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
    return f"{param.name} ({param.type}{'' if param.required else ', optional'})"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
