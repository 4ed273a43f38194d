"""1xx: keys and values."""

from __future__ import annotations

from ork.definition.codes.explanation import Explanation, by_code

CODES = by_code(
    Explanation(
        "ORK100",
        "the definition has mistakes",
        "The file was read to its end and every mistake in it has a line of its own with a code of its own.",
        right="ork validate workflow.yaml",
    ),
    Explanation(
        "ORK101",
        "unknown key",
        "A key that nobody reads is a setting that has no effect, so it is refused.",
        "tasks:\n  load:\n    comand: ./load.sh",
        "tasks:\n  load:\n    command: ./load.sh",
    ),
    Explanation(
        "ORK102",
        "a key is missing",
        "A workflow needs a name and at least one task; a schedule written as a map needs `cron`.",
        "tasks:\n  load: {command: ./load.sh}",
        "name: nightly\ntasks:\n  load: {command: ./load.sh}",
    ),
    Explanation(
        "ORK103",
        "a value of the wrong kind",
        "A list, a map, a number, true/false and text are different things. YAML 1.2 knows `true` and `false` only:\n"
        "`yes`, `no`, `on` and `off` are text.",
        "fail_fast: yes",
        "fail_fast: true",
    ),
    Explanation(
        "ORK104",
        "a value that is not allowed here",
        "The key takes one of a few words, or a number within limits.",
        "run_if: all_succes",
        "run_if: all_success",
    ),
    Explanation(
        "ORK105",
        "a name that cannot be one",
        "Names become parts of paths, commands and addresses. They begin with a letter, a digit or _ and hold letters,\n"
        "digits, _ - and . (at most 128). Names of params hold no dots.",
        'name: "my etl/v2"',
        "name: my-etl.v2",
    ),
    Explanation(
        "ORK106",
        "a key written twice",
        "YAML would silently keep the last one. Which one was meant cannot be told, so both places are shown.",
        "tasks:\n  load: {command: ./a.sh}\n  load: {command: ./b.sh}",
        "tasks:\n  load_a: {command: ./a.sh}\n  load_b: {command: ./b.sh}",
    ),
    Explanation(
        "ORK107",
        "this is not YAML",
        "The text cannot be read beyond this place. The usual reasons: tabs, indentation, a missing quote,\n"
        "a value with `: ` in it that is not quoted.",
        "description: loads: everything",
        'description: "loads: everything"',
    ),
    Explanation(
        "ORK108",
        "anchors, aliases and merge keys",
        "`&name`, `*name` and `<<` let a small file stand for a huge one and hide what a task does. Use `defaults`\n"
        "for what tasks share.",
        "tasks:\n  a: &base {command: ./x.sh, retries: 2}\n  b: *base",
        "defaults: {retries: 2}\ntasks:\n  a: {command: ./x.sh}\n  b: {command: ./x.sh}",
    ),
    Explanation(
        "ORK109",
        "tags",
        "`!!str`, `!!python/…` and all other tags are refused. Quotes make text; everything else follows from how\n"
        "a value is written.",
        "env: {PORT: !!str 8080}",
        'env: {PORT: "8080"}',
    ),
    Explanation(
        "ORK110",
        "text that cannot be read",
        "Files are UTF-8 without control characters (tabs and line ends are fine).",
        right="iconv -f utf-16 -t utf-8 old.yaml > workflow.yaml",
    ),
    Explanation(
        "ORK111",
        "too large or nested too deeply",
        "A file may have 64 MiB, 64 levels and about two million values. More data than that belongs in a file that the\n"
        "task reads.",
    ),
    Explanation(
        "ORK112",
        "not exactly one document",
        "A file holds one workflow: it may not be empty, and it may not contain a second document after `---`.",
        "name: a\ntasks: {x: {command: ./x.sh}}\n---\nname: b",
        "name: a\ntasks: {x: {command: ./x.sh}}",
    ),
    Explanation(
        "ORK113",
        "a number JSON cannot carry",
        "Constants reach tasks as JSON, which has no infinity, no not-a-number, and loses digits of very long integers.",
        "inputs: {limit: .inf}",
        "inputs: {limit: null}",
    ),
    Explanation(
        "ORK114",
        "not a duration",
        "Durations are seconds, or numbers with a unit: ms, s, m, h, d; several may follow each other.",
        "timeout: 10 minutes",
        "timeout: 10m",
    ),
    Explanation(
        "ORK115",
        "keys that exclude each other",
        "A task does one thing: it runs a `file`, a `module` or a `command`, or another `workflow`, or waits for an\n"
        "`approval`. `function` belongs to Python; a task that waits for a person runs nothing that could be retried.",
        "load:\n  file: tasks/load.py\n  command: ./load.sh",
        "load:\n  file: tasks/load.py",
    ),
    Explanation(
        "ORK116",
        "a command that cannot be split into words",
        "A command written as text is split into words as a shell would: quotes must be closed, and there must be\n"
        "at least one word.",
        "command: echo 'hello",
        "command: echo 'hello'",
    ),
    Explanation(
        "ORK117",
        "shell syntax in a command",
        "No shell runs a command, so pipes, redirections, && and ; would be passed on as plain words. Ask for a shell\n"
        "where one is wanted.",
        "command: cat a.txt | sort > b.txt",
        'command: ["sh", "-c", "cat a.txt | sort > b.txt"]',
    ),
    Explanation(
        "ORK118",
        "not a rate",
        "A rate is a number of starts per time: `10/s`, `100/m`, `1000/h`, `5/30s`, or a map of `count` and `seconds`.",
        "rate: 10 per second",
        "rate: 10/s",
    ),
    Explanation(
        "ORK119",
        "a condition that says too little",
        "`when` names a value and compares it with constants: equals, not_equals, lt, le, gt, ge, in, exists. Several\n"
        "comparisons must all hold.",
        "when: {ref: tasks.extract.output.count}",
        "when: {ref: tasks.extract.output.count, gt: 0}",
    ),
    Explanation(
        "ORK120",
        "a limit for instances without instances",
        "`concurrency` is how many instances of one task run at once. A task without `foreach` or `parallel` has one. What\n"
        "several tasks share is a pool.",
        "load: {command: ./load.sh, concurrency: 4}",
        "load: {command: ./load.sh, foreach: [a, b, c], concurrency: 2}",
    ),
    Explanation(
        "ORK121",
        "an environment that says too little or too much",
        "An environment is a virtual environment's folder, `script` for the header of the task's own file, or a map with\n"
        "either `requirements` (a list, or a file) or `requirements_file`.",
        "environment: {requirements: []}",
        "environment: {requirements: [pandas>=2, pyarrow]}",
    ),
    Explanation(
        "ORK122",
        "a secret as an argument",
        "The arguments of a program can be seen by every process of the machine. A secret reaches it as a variable of its\n"
        "environment, or as one of its `inputs`.",
        "command: [curl, -H, {secret: KEY}, https://example.org]",
        'command: ["sh", "-c", "curl -H \\"$KEY\\" https://example.org"]\nenv: {KEY: {secret: KEY}}',
    ),
)
