"""4xx: types."""

from __future__ import annotations

from ork.definition.codes.explanation import CodeExplanation, by_code

CODES = by_code(
    CodeExplanation(
        "ORK401",
        "default does not match its type",
        "The default of a param is checked like any other value.",
        "params:\n  count: {type: int, default: ten}",
        "params:\n  count: {type: int, default: 10}",
    ),
    CodeExplanation(
        "ORK402",
        "unknown type",
        "Types are any, none, str, int, float, bool, date, datetime, list[T], dict[str, T], T? (nullable), T | U, literals such\n"
        'as "a" | "b", maps of fields to types, and the names in `types`. Inside { } a type with brackets must be quoted.',
        "params:\n  day: {type: dates}",
        "params:\n  day: {type: date}",
    ),
    CodeExplanation(
        "ORK403",
        "invalid params",
        "A run needs a value of the declared type for each param without a default, and no other params.",
        "ork run etl.yaml -p day=yesterday",
        "ork run etl.yaml -p day=2026-01-31",
    ),
    CodeExplanation(
        "ORK404",
        "conflicting params in a Python workflow",
        "A parameter that is not the name of a task becomes a param of the workflow. Functions that use the same param must agree\n"
        "on its type and default, or the param must be declared.",
        "@etl.task\ndef extract(day: date): ...\n@etl.task\ndef load(day: str): ...",
        'etl = Workflow("etl", params={"day": date})',
    ),
    CodeExplanation(
        "ORK405",
        "type mismatch",
        "A value must match the annotation of the function's parameter, or `input_type`. Its type is that of the param, the\n"
        "constant, or the upstream task's return annotation or `output_type`; downstream of a fan-out, a list of that. If either\n"
        "side has no type, nothing is checked.",
        "# def extract() -> list[str]: …\n# def total(extract: list[int]) -> int: …\n"
        "total: {file: etl.py, function: total, depends_on: [extract]}",
        "# def total(extract: list[str]) -> int: …\ntotal: {file: etl.py, function: total, depends_on: [extract]}",
    ),
    CodeExplanation(
        "ORK406",
        "ref to an unknown field",
        "The type of the output is known, and has no such field or index.",
        "# def extract() -> Extracted: …, which has `rows`\ninputs: {count: {ref: extract.row}}",
        "inputs: {count: {ref: extract.rows}}",
    ),
    CodeExplanation(
        "ORK407",
        "missing type (strict)",
        "With `--strict` every input and output of a task needs a type: annotations of its function, or `input_type` and\n"
        "`output_type`.",
        "load: {command: ./load.sh}",
        "load: {command: ./load.sh, output_type: none}",
    ),
    CodeExplanation(
        "ORK408",
        "unreadable types (strict)",
        "Annotations are read by loading the file in the Python that runs it. That failed, or that environment is only built when\n"
        "the task runs. Fix the file, or declare the types in the workflow.",
        right="load: {file: load.py, input_type: {rows: int}, output_type: none}",
    ),
)
