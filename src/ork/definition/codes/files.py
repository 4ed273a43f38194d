"""5xx: files and imports. 6xx: executors and workers."""

from __future__ import annotations

from ork.definition.codes.explanation import Explanation, by_code

CODES = by_code(
    Explanation(
        "ORK501",
        "a file that is not there",
        "Paths begin at the folder of the workflow file. A bare word in `command` is a program: it is looked up in\n"
        "`script_dir` and on PATH.",
        "load: {file: task/load.py}",
        "load: {file: tasks/load.py}",
    ),
    Explanation(
        "ORK502",
        "a Python file that is not Python",
        "The file a task names cannot be parsed. The place shown is in that file.",
        "def main()\n    return 1",
        "def main():\n    return 1",
    ),
    Explanation(
        "ORK503",
        "a function that is not there",
        "The file has no function of that name. Without `function:` it is `main`.",
        "extract: {file: etl.py, function: extrct}",
        "extract: {file: etl.py, function: extract}",
    ),
    Explanation(
        "ORK504",
        "an argument that nothing provides",
        "Arguments come from `inputs`, then from upstream tasks of the same name, then from params of the same name, then\n"
        "from the function's own defaults. A parameter named `ctx` or annotated `ork.Context` receives the context.",
        "# def load(rows, table): …\nload: {file: etl.py, function: load, inputs: {rows: 3}}",
        "load: {file: etl.py, function: load, inputs: {rows: 3, table: orders}}",
    ),
    Explanation(
        "ORK505",
        "an input the function does not take",
        "The function has no parameter of that name, and no `**kwargs` to receive it.",
        "# def load(rows): …\ninputs: {row: 3}",
        "inputs: {rows: 3}",
    ),
    Explanation(
        "ORK601",
        "an unknown executor",
        "`process` runs programs, `python` calls functions. Most of the time `executor` can be left out.",
        "load: {executor: pyhton, file: load.py}",
        "load: {file: load.py}",
    ),
    Explanation(
        "ORK602",
        "a task that runs nothing",
        "A task needs a `file`, a `module` or a `command`.",
        "load: {depends_on: [extract]}",
        "load: {command: ./load.sh, depends_on: [extract]}",
    ),
    Explanation(
        "ORK610",
        "an attempt could not be started, found or stopped",
        "The executor could not do what it was asked to. The message says what the system answered.",
        right="ork doctor",
    ),
)
