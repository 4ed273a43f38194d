"""5xx: files and imports. 6xx: executors and workers."""

from __future__ import annotations

from ork.definition.codes.explanation import Explanation, by_code

CODES = by_code(
    Explanation(
        "ORK501",
        "a file that is not there",
        "Paths begin at the folder of the workflow file; one that begins with / may begin at the project's folder,\n"
        "where ork.yaml is. A bare word in `command` is a program: it is looked up in\n"
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
        "ORK506",
        "an environment that cannot be used",
        "The folder has no `bin/python`, the header of the script (PEP 723) cannot be understood, or the task runs no\n"
        "Python at all.",
        "load: {file: load.py, environment: .venv-load}",
        "load: {file: load.py, environment: {requirements: [pandas]}}",
    ),
    Explanation(
        "ORK507",
        "not a Rust program",
        "A Rust task is a single `.rs` file, or a folder with a Cargo.toml.",
        "parse: {executor: rust, file: parser/src}",
        "parse: {executor: rust, file: parser}",
    ),
    Explanation(
        "ORK508",
        "an import that cannot be followed",
        "The models of a dbt project are read from its `target/manifest.json` if that is newer than the project, else by\n"
        "running `dbt ls`. The message says what dbt answered.",
        "import: [{dbt: warehose}]",
        "import: [{dbt: warehouse}]",
    ),
    Explanation(
        "ORK510",
        "a Python workflow that cannot be loaded",
        "The file raised an error, ended the process or took too long while it was loaded. It is loaded by the Python of\n"
        "the project: that of `.venv` beside the file if there is one, else the one Ork runs in. Loading must only\n"
        "define things: work belongs into tasks.",
        "import pandas  # not installed in .venv",
        ".venv/bin/pip install pandas",
    ),
    Explanation(
        "ORK511",
        "a Python file without a workflow, or with several",
        "Workflows are found at the top level of the file that makes them. Where there are several, say which one is meant.",
        "ork run flows.py",
        "ork run flows.py my_etl",
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
        "A task needs a `file`, a `module` or a `command`; or a `workflow` to run, or an `approval` to wait for.",
        "load: {depends_on: [extract]}",
        "load: {command: ./load.sh, depends_on: [extract]}",
    ),
    Explanation(
        "ORK603",
        "a config that does not fit its executor",
        "`config` and `config_file` are what a task of a custom executor (or of `http` and `sql`) does; such a task has no\n"
        "`file` or `command`. Refs may stand in `config`, not in a file; the text of an SQL query never depends on data:\n"
        "values come in as parameters.",
        'count: {executor: sql, config: {url: "sqlite:///a.db", query: {ref: params.query}}}',
        'count:\n  executor: sql\n  config: {url: "sqlite:///a.db", query: "SELECT * FROM t WHERE day = :day"}\n'
        "  inputs: {day: {ref: params.day}}",
    ),
    Explanation(
        "ORK604",
        "an executor in ork.yaml that makes no sense",
        "An executor of your own has a `class`; its `config` may hold constants and secrets. Ork's own executors have\n"
        "`max_workers` alone.",
        "executors: {spark: {config: {master: local}}}",
        'executors: {spark: {class: "jobs.spark:Spark", config: {master: local}}}',
    ),
    Explanation(
        "ORK605",
        "a sub-workflow that cannot be started",
        "The workflow a task runs must be known (deployed, or a file of its name beside the one that is run), must take\n"
        "the inputs as its params, and must not lead back to itself without end.",
        "report: {workflow: raport}",
        "report: {workflow: report}",
    ),
    Explanation(
        "ORK606",
        "a worker config that does not fit",
        "`worker:` names an entry of workers.yaml beside ork.yaml. One with `where: docker` runs tasks with an `image`, one\n"
        "with `where: local` all others, one without `where` both. An entry with a mistake in it cannot be used.",
        "report: {image: report, worker: hevy}",
        "report: {image: report, worker: heavy}",
    ),
    Explanation(
        "ORK607",
        "more than the worker config allows",
        "`resources` may ask for less than the worker config gives, never for more: how large tasks may be is decided where\n"
        "they run.",
        "# workers.yaml\ndefault: {where: docker, memory: 512Mi}\n# workflow.yaml\nreport: {image: report, resources: {memory: 2Gi}}",
        "report: {image: report, resources: {memory: 256Mi}}",
    ),
    Explanation(
        "ORK608",
        "a value that no worker config can have",
        "An amount of processors (`2`, `0.5`, `500m`) or memory (`512Mi`, `2G`), a volume (`/folder:/where:ro`), or a key that\n"
        "means nothing where the config runs its tasks.",
        "heavy: {where: docker, memory: lots}",
        "heavy: {where: docker, memory: 8Gi}",
    ),
    Explanation(
        "ORK609",
        "not an image, or no container",
        "`image` is a name as `docker pull` takes it. `input` and `output` name files in its container by their whole path.",
        "report: {command: report, output: {from_file: result.json}}",
        "report: {image: registry/report:1, output: {from_file: /out/result.json}}",
    ),
    Explanation(
        "ORK610",
        "an attempt could not be started, found or stopped",
        "The executor could not do what it was asked to. The message says what the system answered.",
        right="ork doctor",
    ),
    Explanation(
        "ORK611",
        "the container engine said no",
        "The engine was reached and refused what it was asked to do. The message is its own.",
    ),
    Explanation(
        "ORK612",
        "no container engine",
        "Tasks with an `image` need an engine with Docker's API: on this machine's /var/run/docker.sock, where DOCKER_HOST\n"
        "says, or where the worker config says. Tasks wait for one that is out of reach; nothing is started twice.",
        right="DOCKER_HOST=unix:///run/user/1000/podman/podman.sock ork serve",
    ),
)
