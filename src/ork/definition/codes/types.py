"""4xx: types."""

from __future__ import annotations

from ork.definition.codes.explanation import Explanation, by_code

CODES = by_code(
    Explanation(
        "ORK401",
        "a default that does not fit its type",
        "The default of a param is checked like any other value of it.",
        "params:\n  count: {type: int, default: ten}",
        "params:\n  count: {type: int, default: 10}",
    ),
    Explanation(
        "ORK402",
        "an unknown type",
        "Types are any, none, str, int, float, bool, date, datetime, list[T], dict[str, T], T? for what may be null, T | U,\n"
        'values such as "a" | "b", maps of fields to types, and the names below `types`. Inside { } a type with brackets\n'
        "must be in quotes.",
        "params:\n  day: {type: dates}",
        "params:\n  day: {type: date}",
    ),
    Explanation(
        "ORK403",
        "params that do not fit the workflow",
        "A run gets the params its workflow declares: no others, each of the declared type, and all that have no default.",
        "ork run etl.yaml -p day=yesterday",
        "ork run etl.yaml -p day=2026-01-31",
    ),
    Explanation(
        "ORK404",
        "tasks of a Python workflow that want different params of one name",
        "A parameter that is no task becomes a param of the workflow. Two functions that use the same name must agree on\n"
        "its type and its default, or the param has to be declared.",
        "@etl.task\ndef extract(day: date): ...\n@etl.task\ndef load(day: str): ...",
        'etl = Workflow("etl", params={"day": date})',
    ),
    Explanation(
        "ORK405",
        "types that do not fit",
        "What a task gets must be what its function's annotations, or its `input_type`, ask for. What it gets has the type\n"
        "of the param, of the constant, or of what the task before it returns by its annotation or `output_type`; after a\n"
        "task that fans out, a list of that. Without a type on either side nothing is compared.",
        "# def extract() -> list[str]: …\n# def total(extract: list[int]) -> int: …\n"
        "total: {file: etl.py, function: total, depends_on: [extract]}",
        "# def total(extract: list[str]) -> int: …\ntotal: {file: etl.py, function: total, depends_on: [extract]}",
    ),
    Explanation(
        "ORK406",
        "a ref to a field that is not there",
        "The type of the output is known, and it has no such field or index.",
        "# def extract() -> Extracted: …, which has `rows`\ninputs: {count: {ref: extract.row}}",
        "inputs: {count: {ref: extract.rows}}",
    ),
    Explanation(
        "ORK407",
        "no type, where `--strict` asks for one",
        "In strict validation every input and every output of a task has a type: by annotations of its function, or by\n"
        "`input_type` and `output_type`.",
        "load: {command: ./load.sh}",
        "load: {command: ./load.sh, output_type: none}",
    ),
    Explanation(
        "ORK408",
        "types that cannot be read, where `--strict` asks for them",
        "Annotations are read by loading the file in the Python it runs in. That failed, or that Python is only made when\n"
        "the task runs. Make the file load, or declare the types in the workflow.",
        right="load: {file: load.py, input_type: {rows: int}, output_type: none}",
    ),
)
