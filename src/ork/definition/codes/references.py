"""2xx: references between the parts of a file. 3xx: schedules."""

from __future__ import annotations

from ork.definition.codes.explanation import CodeExplanation, by_code

CODES = by_code(
    CodeExplanation(
        "ORK201",
        "unknown task in `depends_on`",
        "Every name in `depends_on` must be a key of `tasks`.",
        "tasks:\n  transform: {command: ./t.sh}\n  load: {command: ./l.sh, depends_on: [transfrom]}",
        "tasks:\n  transform: {command: ./t.sh}\n  load: {command: ./l.sh, depends_on: [transform]}",
    ),
    CodeExplanation(
        "ORK202",
        "task depends on itself",
        "It would never start.",
        "load: {command: ./l.sh, depends_on: [load]}",
        "load: {command: ./l.sh}",
    ),
    CodeExplanation(
        "ORK203",
        "circular dependency",
        "Dependencies, including those implied by refs, must not form a cycle. The message shows one cycle, each task before\n"
        "the one that depends on it.",
        "a: {command: ./a.sh, depends_on: [b]}\nb: {command: ./b.sh, depends_on: [a]}",
        "a: {command: ./a.sh}\nb: {command: ./b.sh, depends_on: [a]}",
    ),
    CodeExplanation(
        "ORK204",
        "invalid ref",
        "Paths: `tasks.<name>.output`, followed by any number of `.field` and `[index]`; `params.<name>`; `run.id`,\n"
        "`run.scheduled_for`, `run.attempt`; in a `foreach` task `item`. A ref is a whole value: it cannot be part of a constant.",
        "inputs:\n  first: {ref: tasks.extract.rows}",
        "inputs:\n  first: {ref: tasks.extract.output.rows}",
    ),
    CodeExplanation(
        "ORK205",
        "ref to an unknown task",
        "The task named in the path must be a key of `tasks`.",
        "inputs:\n  rows: {ref: tasks.extrat.output}",
        "inputs:\n  rows: {ref: tasks.extract.output}",
    ),
    CodeExplanation(
        "ORK206",
        "ref to an undeclared param",
        "Params are declared at the top level of the file, with a type and optionally a default.",
        "inputs:\n  day: {ref: params.day}",
        "params:\n  day: {type: date}",
    ),
    CodeExplanation(
        "ORK207",
        "unknown pool",
        "If ork.yaml lists pools, a task can only use one of them: a misspelt pool would have no limit.",
        "pool: databse",
        "pool: database",
    ),
    CodeExplanation(
        "ORK208",
        "unknown alert",
        "A workflow can only use alerts that are defined in `alerts` of ork.yaml.",
        "alerts: [opps]",
        "alerts: [ops]",
    ),
    CodeExplanation(
        "ORK209",
        "item outside of a foreach",
        "Only instances of a task with `foreach` have an item. `foreach`, `parallel` and `when` are evaluated before instances\n"
        "exist.",
        "load: {command: [./load.sh, {ref: item}]}",
        "load: {command: [./load.sh, {ref: item}], foreach: tasks.list.output}",
    ),
    CodeExplanation(
        "ORK210",
        "templates are not supported",
        "Ork does not evaluate `{{ … }}`: the task would get the braces as text. Use a `ref` for a whole value, and combine it with\n"
        "other text in the task. Write `{const: …}` for text that contains braces.",
        'command: [./load.sh, "--day={{ params.day }}"]',
        "command: [./load.sh, --day, {ref: params.day}]",
    ),
    CodeExplanation(
        "ORK211",
        "undeclared secret",
        "A workflow can use the secrets that the project declares: those in `secrets` of ork.yaml, and the names in `.env` and\n"
        "`.ork/secrets`. Other variables of the scheduler are not secrets. Names that start with ORK_ are reserved.",
        "load:\n  command: ./load.sh\n  env: {PGPASSWORD: {secret: PGPASSWORD}}",
        "# ork.yaml\nsecrets:\n  PGPASSWORD: {from: env, workflows: [etl]}",
    ),
    CodeExplanation(
        "ORK290",
        "ref to a missing field or index",
        "The upstream task ran, but its output has no such field or index.",
        '# extract returns {"rows": 3}\ninputs:\n  count: {ref: tasks.extract.output.count}',
        "inputs:\n  count: {ref: tasks.extract.output.rows}",
    ),
    CodeExplanation(
        "ORK301",
        "invalid cron expression",
        "Five fields (minute, hour, day, month, weekday), six with seconds in front, or one of @hourly, @daily, @weekly,\n"
        "@monthly, @yearly.",
        'schedule: "0 25 * * *"',
        'schedule: "0 2 * * *"',
    ),
    CodeExplanation(
        "ORK302",
        "schedule never fires",
        "The expression is valid, but no date ever matches it.",
        'schedule: "0 0 30 2 *"',
        'schedule: "0 0 28 2 *"',
    ),
    CodeExplanation(
        "ORK303",
        "unknown time zone",
        "Time zones are names of the IANA database. Abbreviations such as CEST are not supported.",
        'schedule: {cron: "0 2 * * *", timezone: Prague}',
        'schedule: {cron: "0 2 * * *", timezone: Europe/Prague}',
    ),
)
