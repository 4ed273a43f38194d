"""2xx: references between the parts of a file. 3xx: schedules."""

from __future__ import annotations

from ork.definition.codes.explanation import Explanation, by_code

CODES = by_code(
    Explanation(
        "ORK201",
        "depends on something that is not a task",
        "Every name in `depends_on` must be a key below `tasks`.",
        "tasks:\n  transform: {command: ./t.sh}\n  load: {command: ./l.sh, depends_on: [transfrom]}",
        "tasks:\n  transform: {command: ./t.sh}\n  load: {command: ./l.sh, depends_on: [transform]}",
    ),
    Explanation(
        "ORK202",
        "a task that waits for itself",
        "It would never start.",
        "load: {command: ./l.sh, depends_on: [load]}",
        "load: {command: ./l.sh}",
    ),
    Explanation(
        "ORK203",
        "tasks that wait for each other",
        "Dependencies, written ones and those that refs imply, must not lead back to where they began. The message\n"
        "shows one such circle, each task before the one that depends on it.",
        "a: {command: ./a.sh, depends_on: [b]}\nb: {command: ./b.sh, depends_on: [a]}",
        "a: {command: ./a.sh}\nb: {command: ./b.sh, depends_on: [a]}",
    ),
    Explanation(
        "ORK204",
        "a ref that is not a path",
        "Paths: `tasks.<name>.output`, then `.field` and `[index]` as often as needed; `params.<name>`; `run.id`,\n"
        "`run.scheduled_for`, `run.attempt`; in a `foreach` task `item`. A ref is a whole value: it cannot hide inside a\n"
        "constant.",
        "inputs:\n  first: {ref: tasks.extract.rows}",
        "inputs:\n  first: {ref: tasks.extract.output.rows}",
    ),
    Explanation(
        "ORK205",
        "a ref to something that is not a task",
        "The task named in the path must be a key below `tasks`.",
        "inputs:\n  rows: {ref: tasks.extrat.output}",
        "inputs:\n  rows: {ref: tasks.extract.output}",
    ),
    Explanation(
        "ORK206",
        "a ref to a param that is not declared",
        "Params are declared at the top of the file, with a type and perhaps a default.",
        "inputs:\n  day: {ref: params.day}",
        "params:\n  day: {type: date}",
    ),
    Explanation(
        "ORK207",
        "an unknown pool",
        "Where ork.yaml lists pools, a task can only name one of them: a misspelt pool would have no limit at all.",
        "pool: databse",
        "pool: database",
    ),
    Explanation(
        "ORK208",
        "an unknown alert",
        "A workflow can only name alerts that `alerts` in ork.yaml defines: nobody would be told by any other.",
        "alerts: [opps]",
        "alerts: [ops]",
    ),
    Explanation(
        "ORK209",
        "an item where there is none",
        "Only the instances of a task with `foreach` have an item. `foreach`, `parallel` and `when` are judged before there\n"
        "are instances.",
        "load: {command: [./load.sh, {ref: item}]}",
        "load: {command: [./load.sh, {ref: item}], foreach: tasks.list.output}",
    ),
    Explanation(
        "ORK210",
        "a template",
        "Ork evaluates no `{{ … }}`: the task would get the braces as text. A value from somewhere else is a `ref`, and is a\n"
        "whole value; text around it belongs into the task. Text that is meant as it stands is written as `{const: …}`.",
        'command: [./load.sh, "--day={{ params.day }}"]',
        "command: [./load.sh, --day, {ref: params.day}]",
    ),
    Explanation(
        "ORK211",
        "a secret that the project does not give",
        "A workflow gets the secrets that the project declares: those in `secrets` of ork.yaml, and the names in `.env` and\n"
        "`.ork/secrets`. Other variables of the scheduler are not secrets, and names that begin with ORK_ never are.",
        "load:\n  command: ./load.sh\n  env: {PGPASSWORD: {secret: PGPASSWORD}}",
        "# ork.yaml\nsecrets:\n  PGPASSWORD: {from: env, workflows: [etl]}",
    ),
    Explanation(
        "ORK290",
        "an input that is not in the output it points at",
        "The task ran, and what it returned has no such field or index. The ref and the output do not fit each other.",
        '# extract returns {"rows": 3}\ninputs:\n  count: {ref: tasks.extract.output.count}',
        "inputs:\n  count: {ref: tasks.extract.output.rows}",
    ),
    Explanation(
        "ORK301",
        "not a cron expression",
        "Five fields (minute, hour, day, month, weekday), six with seconds in front, or one of @hourly, @daily, @weekly,\n"
        "@monthly, @yearly.",
        'schedule: "0 25 * * *"',
        'schedule: "0 2 * * *"',
    ),
    Explanation(
        "ORK302",
        "a schedule that never fires",
        "The expression is well formed, but there is no such day.",
        'schedule: "0 0 30 2 *"',
        'schedule: "0 0 28 2 *"',
    ),
    Explanation(
        "ORK303",
        "an unknown time zone",
        "Zones are names of the IANA database. Abbreviations such as CEST are not zones.",
        'schedule: {cron: "0 2 * * *", timezone: Prague}',
        'schedule: {cron: "0 2 * * *", timezone: Europe/Prague}',
    ),
)
