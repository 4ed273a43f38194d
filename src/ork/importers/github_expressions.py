"""Expressions of GitHub Actions, `${{ … }}`: references, secrets, variables, and conditions of jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_SPLIT = re.compile(r"(\$\{\{.*?\}\})", re.S)


class ExpressionError(Exception):
    """An expression or key that is not translated; `line` is its place if it is known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class Expression(NamedTuple):
    text: str

    @property
    def name(self) -> str:
        """A name for a variable with its value."""
        return re.sub(r"\W+", "_", self.text).strip("_")


def parts_of(text: str) -> list[str | Expression]:
    """The text in parts: plain text, and expressions."""
    parts = [part for part in _SPLIT.split(text) if part]
    return [Expression(part[3:-2].strip()) if part.startswith("${{") else part for part in parts] or [""]


def expression_of(expression: Expression, jobs: Mapping[str, str], params: dict[str, Any]) -> dict[str, str] | str:
    """`{ref: …}` or `{secret: …}`; the name of a variable of the script for values of the same job."""
    path = re.sub(r"\[\s*'([^']*)'\s*\]", r".\1", expression.text).split(".")
    match path:
        case ["secrets" | "vars", name]:
            return {"secret": name}
        case ["inputs", name] | ["github", "event", "inputs", name]:
            params.setdefault(name, {"default": None})
            return {"ref": f"params.{name}"}
        case ["matrix", *rest] if rest:
            return {"ref": ".".join(["item", *rest])}
        case ["needs", job, "outputs", name] if job in jobs:
            return {"ref": f"tasks.{jobs[job]}.output.{name}"}
        case ["env", name]:
            return name
        case ["steps", step, "outputs", name]:
            return re.sub(r"\W", "_", f"steps_{step}_outputs_{name}")
        case ["github", "run_id" | "run_number"]:
            return {"ref": "run.id"}
        case ["github", "workspace"]:
            return "GITHUB_WORKSPACE"
    raise ExpressionError(f"the expression `{expression.text}` is not translated")


def job_condition(text: str, jobs: Mapping[str, str], params: dict[str, Any], line: int) -> dict[str, Any]:
    """`run_if` and `when` for the `if` of a job."""
    given = text.strip().removeprefix("${{").removesuffix("}}").strip()
    keys: dict[str, Any] = {}
    conditions = []
    for part in re.split(r"\s*&&\s*", given):
        match part.replace(" ", ""):
            case "success()" | "":
                continue
            case "always()" | "!cancelled()":
                keys["run_if"] = "all_done"
                continue
            case "failure()":
                keys["run_if"] = "any_failed"
                continue
        found = re.fullmatch(r"([\w.-]+)\s*(==|!=)\s*('([^']*)'|true|false)", part)
        if found is None:
            raise ExpressionError(f"the condition `{given}` is not translated", line)
        value = expression_of(Expression(found[1]), jobs, params)
        if not isinstance(value, dict) or "ref" not in value:
            raise ExpressionError(f"the condition `{given}` is not translated", line)
        wanted: Any = found[4] if found[4] is not None else found[3] == "true"
        conditions.append({"ref": value["ref"], "equals" if found[2] == "==" else "not_equals": wanted})
    if conditions:
        keys["when"] = conditions[0] if len(conditions) == 1 else conditions
    return keys
