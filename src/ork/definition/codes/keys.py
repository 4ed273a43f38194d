"""1xx: keys and values."""

from __future__ import annotations

from ork.definition.codes.explanation import CodeExplanation, by_code

CODES = by_code(
    CodeExplanation(
        "ORK100",
        "the definition has errors",
        "All errors in the file are listed, each with its own code.",
        right="ork validate workflow.yaml",
    ),
    CodeExplanation(
        "ORK101",
        "unknown key",
        "Unknown keys are rejected, because they would have no effect.",
        "tasks:\n  load:\n    comand: ./load.sh",
        "tasks:\n  load:\n    command: ./load.sh",
    ),
    CodeExplanation(
        "ORK102",
        "missing key",
        "A workflow needs a name and at least one task; a schedule written as a map needs `cron`.",
        "tasks:\n  load: {command: ./load.sh}",
        "name: nightly\ntasks:\n  load: {command: ./load.sh}",
    ),
    CodeExplanation(
        "ORK103",
        "value of the wrong type",
        "A list, a map, a number, a boolean and text are different types. YAML 1.2 has only `true` and `false`: `yes`, `no`, `on`\n"
        "and `off` are text.",
        "fail_fast: yes",
        "fail_fast: true",
    ),
    CodeExplanation(
        "ORK104",
        "value not allowed here",
        "The key accepts one of a few words, or a number within limits.",
        "run_if: all_succes",
        "run_if: all_success",
    ),
    CodeExplanation(
        "ORK105",
        "invalid name",
        "Names are used in paths, commands and URLs. They start with a letter, a digit or _ and contain letters, digits, _ - and .\n"
        "(at most 128 characters). Names of params contain no dots.",
        'name: "my etl/v2"',
        "name: my-etl.v2",
    ),
    CodeExplanation(
        "ORK106",
        "duplicate key",
        "YAML would silently keep the last one. Both positions are shown.",
        "tasks:\n  load: {command: ./a.sh}\n  load: {command: ./b.sh}",
        "tasks:\n  load_a: {command: ./a.sh}\n  load_b: {command: ./b.sh}",
    ),
    CodeExplanation(
        "ORK107",
        "invalid YAML",
        "The text cannot be parsed beyond this position. Common causes: tabs, indentation, a missing quote, an unquoted value\n"
        "that contains `: `.",
        "description: loads: everything",
        'description: "loads: everything"',
    ),
    CodeExplanation(
        "ORK108",
        "anchors, aliases and merge keys are not supported",
        "`&name`, `*name` and `<<` let a small file expand to a huge one and hide what a task does. Use `defaults` for settings\n"
        "that tasks share.",
        "tasks:\n  a: &base {command: ./x.sh, retries: 2}\n  b: *base",
        "defaults: {retries: 2}\ntasks:\n  a: {command: ./x.sh}\n  b: {command: ./x.sh}",
    ),
    CodeExplanation(
        "ORK109",
        "YAML tags are not supported",
        "`!!str`, `!!python/…` and all other tags are rejected. Quote a value to make it text.",
        "env: {PORT: !!str 8080}",
        'env: {PORT: "8080"}',
    ),
    CodeExplanation(
        "ORK110",
        "invalid text encoding",
        "Files must be UTF-8 without control characters other than tabs and line breaks.",
        right="iconv -f utf-16 -t utf-8 old.yaml > workflow.yaml",
    ),
    CodeExplanation(
        "ORK111",
        "too large or nested too deeply",
        "A file may have 64 MiB, 64 levels and about two million values. Put more data into a file that the task reads.",
    ),
    CodeExplanation(
        "ORK112",
        "not exactly one YAML document",
        "A file contains one workflow: it must not be empty, and must not have a second document after `---`.",
        "name: a\ntasks: {x: {command: ./x.sh}}\n---\nname: b",
        "name: a\ntasks: {x: {command: ./x.sh}}",
    ),
    CodeExplanation(
        "ORK113",
        "number not representable in JSON",
        "Constants are passed to tasks as JSON, which has no infinity and no NaN, and loses digits of very long integers.",
        "inputs: {limit: .inf}",
        "inputs: {limit: null}",
    ),
    CodeExplanation(
        "ORK114",
        "invalid duration",
        "A duration is a number of seconds, or numbers with units: ms, s, m, h, d. Several can be combined: `1h30m`.",
        "timeout: 10 minutes",
        "timeout: 10m",
    ),
    CodeExplanation(
        "ORK115",
        "mutually exclusive keys",
        "A task has one action: it runs a `file`, a `module`, a `command` or another `workflow`, or waits for an `approval`.\n"
        "`function` is for Python only; an approval runs nothing that could be retried.",
        "load:\n  file: tasks/load.py\n  command: ./load.sh",
        "load:\n  file: tasks/load.py",
    ),
    CodeExplanation(
        "ORK116",
        "command cannot be split into words",
        "A command given as text is split like in a shell: quotes must be closed, and there must be at least one word.",
        "command: echo 'hello",
        "command: echo 'hello'",
    ),
    CodeExplanation(
        "ORK117",
        "shell syntax in a command",
        "Commands run without a shell, so pipes, redirections, && and ; would be passed as plain arguments. Run a shell\n"
        "explicitly if you need one.",
        "command: cat a.txt | sort > b.txt",
        'command: ["sh", "-c", "cat a.txt | sort > b.txt"]',
    ),
    CodeExplanation(
        "ORK118",
        "invalid rate",
        "A rate is a number of starts per time: `10/s`, `100/m`, `1000/h`, `5/30s`, or a map of `count` and `seconds`.",
        "rate: 10 per second",
        "rate: 10/s",
    ),
    CodeExplanation(
        "ORK119",
        "incomplete condition",
        "`when` compares a value with constants: equals, not_equals, lt, le, gt, ge, in, exists. If there are several comparisons,\n"
        "all must hold.",
        "when: {ref: tasks.extract.output.count}",
        "when: {ref: tasks.extract.output.count, gt: 0}",
    ),
    CodeExplanation(
        "ORK120",
        "concurrency without instances",
        "`concurrency` limits how many instances of one task run at once. A task without `foreach` or `parallel` has only one.\n"
        "Use a pool for a limit across tasks.",
        "load: {command: ./load.sh, concurrency: 4}",
        "load: {command: ./load.sh, foreach: [a, b, c], concurrency: 2}",
    ),
    CodeExplanation(
        "ORK121",
        "invalid environment",
        "An environment is the folder of a virtual environment, `script` for the header of the task's own file, or a map with\n"
        "either `requirements` (a list, or a file) or `requirements_file`.",
        "environment: {requirements: []}",
        "environment: {requirements: [pandas>=2, pyarrow]}",
    ),
    CodeExplanation(
        "ORK122",
        "secret in an argument",
        "Every process of the machine can see the arguments of a program. Pass a secret as an environment variable, or in\n"
        "`inputs`.",
        "command: [curl, -H, {secret: KEY}, https://example.org]",
        'command: ["sh", "-c", "curl -H \\"$KEY\\" https://example.org"]\nenv: {KEY: {secret: KEY}}',
    ),
    CodeExplanation(
        "ORK123",
        "invalid budget or price",
        "A budget is an amount of US dollars and what happens when the estimated cost of a run exceeds it. A price file has the\n"
        "date of its prices, and dollars by name; `ork cost --prices` lists the names.",
        "budget: 5 dollars",
        "budget: {usd: 5, on_exceed: cancel}",
    ),
)
