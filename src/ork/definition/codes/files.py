"""5xx: files and imports. 6xx: executors and workers."""

from __future__ import annotations

from ork.definition.codes.explanation import CodeExplanation, by_code

CODES = by_code(
    CodeExplanation(
        "ORK501",
        "file not found",
        "Relative paths start at the folder of the workflow file. A path with a leading / may also start at the project's folder,\n"
        "where ork.yaml is. A bare word in `command` is a program: it is looked up in `script_dir` and on PATH.",
        "load: {file: task/load.py}",
        "load: {file: tasks/load.py}",
    ),
    CodeExplanation(
        "ORK502",
        "invalid Python file",
        "The file that a task names cannot be parsed. The position shown is in that file.",
        "def main()\n    return 1",
        "def main():\n    return 1",
    ),
    CodeExplanation(
        "ORK503",
        "function not found",
        "The file has no function of that name. The default of `function` is `main`.",
        "extract: {file: etl.py, function: extrct}",
        "extract: {file: etl.py, function: extract}",
    ),
    CodeExplanation(
        "ORK504",
        "missing argument",
        "Arguments come from `inputs`, then from upstream tasks of the same name, then from params of the same name, then\n"
        "from the function's own defaults. A parameter named `ctx` or annotated `ork.Context` receives the context.",
        "# def load(rows, table): …\nload: {file: etl.py, function: load, inputs: {rows: 3}}",
        "load: {file: etl.py, function: load, inputs: {rows: 3, table: orders}}",
    ),
    CodeExplanation(
        "ORK505",
        "unknown input of a function",
        "The function has no parameter of that name, and no `**kwargs` to receive it.",
        "# def load(rows): …\ninputs: {row: 3}",
        "inputs: {rows: 3}",
    ),
    CodeExplanation(
        "ORK506",
        "unusable environment",
        "The folder has no `bin/python`, the header of the script (PEP 723) is invalid, or the task does not run Python.",
        "load: {file: load.py, environment: .venv-load}",
        "load: {file: load.py, environment: {requirements: [pandas]}}",
    ),
    CodeExplanation(
        "ORK507",
        "not a Rust program",
        "A Rust task is a single `.rs` file, or a folder with a Cargo.toml.",
        "parse: {executor: rust, file: parser/src}",
        "parse: {executor: rust, file: parser}",
    ),
    CodeExplanation(
        "ORK508",
        "import failed",
        "The models of a dbt project are read from its `target/manifest.json` if that is newer than the project, else by\n"
        "running `dbt ls`. The message says what dbt answered.",
        "import: [{dbt: warehose}]",
        "import: [{dbt: warehouse}]",
    ),
    CodeExplanation(
        "ORK510",
        "Python workflow cannot be loaded",
        "The file raised an error, exited or timed out while it was loaded. It is loaded by the Python of the project: that of\n"
        "`.venv` next to the file if there is one, else the one Ork runs in. Loading must only define workflows; the work itself\n"
        "belongs into tasks.",
        "import pandas  # not installed in .venv",
        ".venv/bin/pip install pandas",
    ),
    CodeExplanation(
        "ORK511",
        "no workflow in a Python file, or several",
        "Workflows are looked up at the top level of the file. If there are several, name the one to run.",
        "ork run flows.py",
        "ork run flows.py my_etl",
    ),
    CodeExplanation(
        "ORK601",
        "unknown executor",
        "`process` runs programs, `python` calls functions. In most cases `executor` can be omitted.",
        "load: {executor: pyhton, file: load.py}",
        "load: {file: load.py}",
    ),
    CodeExplanation(
        "ORK602",
        "task without an action",
        "A task needs a `file`, a `module` or a `command`; or a `workflow` to run, or an `approval` to wait for.",
        "load: {depends_on: [extract]}",
        "load: {command: ./load.sh, depends_on: [extract]}",
    ),
    CodeExplanation(
        "ORK603",
        "invalid config for this executor",
        "`config` and `config_file` define a task of a custom executor (or of `http` and `sql`); such a task has no `file` or\n"
        "`command`. Refs are allowed in `config`, not in a file. The text of an SQL query must be constant; pass values as\n"
        "parameters.",
        'count: {executor: sql, config: {url: "sqlite:///a.db", query: {ref: params.query}}}',
        'count:\n  executor: sql\n  config: {url: "sqlite:///a.db", query: "SELECT * FROM t WHERE day = :day"}\n'
        "  inputs: {day: {ref: params.day}}",
    ),
    CodeExplanation(
        "ORK604",
        "invalid executor in ork.yaml",
        "A custom executor needs a `class`; its `config` may contain constants and secrets. Built-in executors have only\n"
        "`max_workers`.",
        "executors: {spark: {config: {master: local}}}",
        'executors: {spark: {class: "jobs.spark:Spark", config: {master: local}}}',
    ),
    CodeExplanation(
        "ORK605",
        "sub-workflow cannot be started",
        "The workflow that a task runs must exist (deployed, or as a file of its name next to the one that is run), must accept\n"
        "the inputs as its params, and must not run itself without end.",
        "report: {workflow: raport}",
        "report: {workflow: report}",
    ),
    CodeExplanation(
        "ORK606",
        "unusable worker config",
        "`worker` names an entry of workers.yaml, next to ork.yaml. One with `where: docker` runs tasks with an `image`, one\n"
        "with `where: local` all others, one without `where` both. An entry with an error cannot be used.",
        "report: {image: report, worker: hevy}",
        "report: {image: report, worker: heavy}",
    ),
    CodeExplanation(
        "ORK607",
        "more resources than the worker config allows",
        "`resources` may request less than the worker config allows, never more.",
        "# workers.yaml\ndefault: {where: docker, memory: 512Mi}\n# workflow.yaml\nreport: {image: report, resources: {memory: 2Gi}}",
        "report: {image: report, resources: {memory: 256Mi}}",
    ),
    CodeExplanation(
        "ORK608",
        "invalid value in a worker config",
        "Expected a number of CPUs (`2`, `0.5`, `500m`), memory (`512Mi`, `2G`), or a volume (`/folder:/where:ro`); or the key has\n"
        "no effect where the config runs its tasks.",
        "heavy: {where: docker, memory: lots}",
        "heavy: {where: docker, memory: 8Gi}",
    ),
    CodeExplanation(
        "ORK609",
        "invalid image, or no container",
        "`image` is a name for `docker pull`. `input` and `output` name files in the container by their absolute path.",
        "report: {command: report, output: {from_file: /out/result.json}}",
        "report: {image: registry/report:1, output: {from_file: /out/result.json}}",
    ),
    CodeExplanation(
        "ORK610",
        "an attempt could not be started, found or stopped",
        "The executor could not carry out an operation. The message contains the system's error.",
        right="ork doctor",
    ),
    CodeExplanation(
        "ORK611",
        "the container engine returned an error",
        "The engine was reached and rejected the request. The message is the engine's.",
    ),
    CodeExplanation(
        "ORK612",
        "no container engine",
        "Tasks with an `image` need an engine with Docker's API: at /var/run/docker.sock, at DOCKER_HOST, or at the `host` of the\n"
        "worker config. While an engine cannot be reached, its tasks wait; nothing is started twice.",
        right="DOCKER_HOST=unix:///run/user/1000/podman/podman.sock ork serve",
    ),
    CodeExplanation(
        "ORK613",
        "cannot run on Cloud Run or Kubernetes",
        "The worker config, or `default_where` in ork.yaml, puts the task on a platform. There it needs an image with its code (that of\n"
        "its code location, or `image` in the worker config). Cloud Run needs a project and a region (`gcp` in ork.yaml), a size that it\n"
        "offers, and secrets that are kept in Secret Manager. Images with `input.to_file` or `output.from_file` need an object store in\n"
        "Google Cloud Storage there (`objects: gs://…`), the only one that Cloud Run can mount. Kubernetes needs an object store that\n"
        "pods can reach, a bucket or a server, and secrets that are kept in Secrets (`from: kubernetes`).",
        "# workers.yaml\ndefault: {where: cloudrun, memory: 2Gi}",
        "# workers.yaml\ndefault: {where: cloudrun, memory: 2Gi, image: europe-docker.pkg.dev/acme/etl/etl:7}\n"
        "# ork.yaml\ngcp: {project: acme, region: europe-west1}",
    ),
)
