"""What each operator of Airflow becomes. `TABLE` maps the name of a class to the function that sets the task's keys."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from ork.importers.airflow.arguments import ArgumentCode, foreach
from ork.importers.airflow.dag_builder import HOOKS, MODULE, DagBuilder
from ork.importers.airflow.objects import Operator, TaskOutput
from ork.importers.airflow.python_tasks import custom_task, python_task
from ork.importers.airflow.sensors import SENSORS
from ork.importers.airflow.sql_tasks import SQL_KINDS, sql_task
from ork.importers.airflow.templates import Piece, has_template
from ork.importers.airflow.words import builder_file, environment_of, shell_script, template_pieces, word, words_of
from ork.importers.project import ImportedTask, Level, Untranslatable, identifier
from ork.importers.python.values import ForeignCall, Unknown, is_known
from ork.importers.yaml_text import literal

Translator = Callable[[Operator, ImportedTask, DagBuilder], None]
_NO_OPERATION = ["true"]
_SCRIPT_SUFFIXES = (".sh", ".bash")


def translate(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    """Sets the keys of a task. Raises Untranslatable if a person is needed."""
    unknown = operator.keywords.get("**")
    if unknown is not None:
        raise Untranslatable("some of its arguments are known only when the file is run")
    if operator.is_of_loop:
        raise Untranslatable("it is made by a loop over values that are known only when the file is run")
    if operator.custom is not None:
        custom_task(operator, task, builder)
        return
    kind = operator.kind.removesuffix("Async")
    if kind in SQL_KINDS:
        sql_task(operator, task, builder)
        return
    found = TABLE.get(kind) or SENSORS.get(kind)
    if found is None:
        raise Untranslatable(f"{operator.kind} has no translation")
    found(operator, task, builder)


# Text with templates, in YAML.


# Bash.


def bash(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    command = operator.keywords.get("bash_command")
    if operator.mapped is not None:
        _mapped_bash(operator, task, builder)
        return
    if isinstance(command, TaskOutput):
        task.keys["command"] = ["bash", "-c", word(command, operator, builder)]
    elif not isinstance(command, str):
        _bash_in_python(operator, task, builder)
        return
    else:
        command = _from_file(command, builder)
        parts = template_pieces(command, operator, builder)
        needs_python = any(isinstance(part, Piece) and part.python is not None and part.tasks for part in parts)
        if needs_python or _is_output_used(operator, builder):
            _bash_in_python(operator, task, builder)
            return
        script, env = shell_script(parts, operator, builder)
        task.keys["command"] = ["bash", "-c", literal(_in_folder(script, operator))]
        if env:
            task.keys["env"] = env
    own = environment_of(operator.keywords.get("env"), operator, builder)
    if own:
        task.keys["env"] = {**task.keys.get("env", {}), **own}


def _in_folder(script: str, operator: Operator) -> str:
    folder = operator.keywords.get("cwd")
    return f"cd {shlex.quote(folder)} || exit 1\n{script}" if isinstance(folder, str) and "{{" not in folder else script


def _is_output_used(operator: Operator, builder: DagBuilder) -> bool:
    """Whether a task reads the last line that the command prints."""
    is_pulled = operator.task_id in builder.pulled and operator.get("do_xcom_push") is not False
    from ork.importers.airflow.objects import outputs_in

    return is_pulled or any(
        output.task is operator
        for other in builder.dag.tasks
        for output in outputs_in([list(other.keywords.values()), other.args, other.mapped])
    )


def _from_file(command: str, builder: DagBuilder) -> str:
    """The content of a script file: Airflow reads a command that ends with `.sh` as the name of a template."""
    if not command.endswith(_SCRIPT_SUFFIXES) or " " in command.strip():
        return command
    text = builder_file(command, builder)
    if text is None:
        raise Untranslatable(f"its script `{command}` was not found")
    return text


def _bash_in_python(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    """A command whose text needs code, or whose last line is read by another task."""
    from ork.importers.airflow.python_tasks import _write_wrapper

    arguments = ArgumentCode(operator, builder)
    command = operator.keywords.get("bash_command")
    command = _from_file(command, builder) if isinstance(command, str) else command
    codes = [arguments.code(command)]
    if operator.keywords.get("env"):
        codes.append(f"env={arguments.code(operator.keywords['env'])}")
    if isinstance(operator.keywords.get("cwd"), str):
        codes.append(f"cwd={arguments.code(operator.keywords['cwd'])}")
    builder.module.add_import(f"from {MODULE} import run_bash")
    builder.module.uses_replacements = True
    _write_wrapper(operator, task, builder, arguments, "run_bash", codes, "{0}")


def _mapped_bash(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    inputs = foreach(operator, task, builder)
    if operator.is_mapped_by_item or not set(inputs) <= {"bash_command", "env"}:
        raise Untranslatable("it is mapped over other arguments than its command")
    if "bash_command" in inputs:
        task.keys["command"] = ["bash", "-c", inputs["bash_command"]]
        return
    script, env = shell_script(
        template_pieces(str(operator.keywords.get("bash_command", "")), operator, builder), operator, builder
    )
    names = {key for each in (operator.mapped or {}).get("env", []) if isinstance(each, dict) for key in each}
    task.keys["command"] = ["bash", "-c", literal(script)]
    task.keys["env"] = {**env, **{name: {"ref": f"item.{name}"} for name in sorted(names)}}


def decorated_bash(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    python_task(operator, task, builder, "run_bash({0})")


# Containers.


def docker(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    image = operator.keywords.get("image")
    task.keys["image"] = _image(image)
    command = operator.keywords.get("command")
    if command is not None:
        task.keys["command"] = words_of(command, operator, builder)
    env = environment_of(operator.keywords.get("environment"), operator, builder)
    env |= environment_of(operator.keywords.get("private_environment"), operator, builder)
    if env:
        task.keys["env"] = env
    _entrypoint(operator, task)
    unkept = [
        name
        for name in ("mounts", "volumes", "network_mode", "user", "privileged", "devices", "extra_hosts")
        if operator.get(name)
    ]
    if unkept:
        task.note(Level.CHECK, f"{', '.join(unkept)}: set them in workers.yaml, which decides what containers may use")
    if operator.mapped is not None:
        inputs = foreach(operator, task, builder)
        if set(inputs) != {"command"}:
            raise Untranslatable("it is mapped over other arguments than its command")
        if not all(isinstance(each, str) for each in operator.mapped.get("command", [])):
            raise Untranslatable("it is mapped over commands of several words")
        task.keys["command"] = ["sh", "-c", inputs["command"]]


def _entrypoint(operator: Operator, task: ImportedTask) -> None:
    entrypoint = operator.keywords.get("entrypoint")
    if entrypoint:
        task.note(
            Level.CHECK,
            "its `entrypoint` was put before the command; the image's own entrypoint, if any, goes before both",
        )
        words = shlex.split(entrypoint) if isinstance(entrypoint, str) else list(entrypoint)
        task.keys["command"] = [*words, *task.keys.get("command", [])]


def _image(image: Any) -> str:
    if not isinstance(image, str) or not image:
        raise Untranslatable("its image is known only when the file is run")
    if has_template(image):
        raise Untranslatable(f"its image `{image}` is a template")
    return image


def kubernetes_pod(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    task.keys["image"] = _image(operator.get("image"))
    words: list[Any] = []
    for name in ("cmds", "arguments"):
        given = operator.keywords.get(name)
        if given is not None:
            words += words_of(given, operator, builder)
    if words:
        task.keys["command"] = words
    if operator.keywords.get("cmds"):
        task.note(
            Level.CHECK,
            "`cmds` replaced the image's entrypoint; here the image's entrypoint, if any, goes before the command",
        )
    env = environment_of(operator.keywords.get("env_vars"), operator, builder)
    if env:
        task.keys["env"] = env
    resources = _resources(operator.keywords.get("container_resources"))
    if resources:
        task.keys["resources"] = resources
    unkept = [
        name
        for name in (
            "volumes",
            "volume_mounts",
            "secrets",
            "env_from",
            "service_account_name",
            "init_containers",
            "pod_template_file",
            "full_pod_spec",
            "affinity",
            "tolerations",
            "node_selector",
        )
        if operator.get(name)
    ]
    if unkept:
        task.note(Level.CHECK, f"{', '.join(unkept)}: not kept; workers.yaml decides what containers may use")
    if operator.get("do_xcom_push") is True:
        task.keys["output"] = {"from_file": "/airflow/xcom/return.json"}
    if operator.mapped is not None:
        inputs = foreach(operator, task, builder)
        raise Untranslatable(f"it is mapped over {', '.join(inputs)}")


def _resources(value: Any) -> dict[str, str]:
    given = value.keywords.get("limits") or value.keywords.get("requests") if isinstance(value, ForeignCall) else None
    if not isinstance(given, dict):
        return {}
    return {key: str(item) for key, item in given.items() if key in ("cpu", "memory") and isinstance(item, str | int)}


# HTTP.


def http(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    given = operator.keywords
    if operator.mapped is not None:
        raise Untranslatable("it is mapped over requests")
    if given.get("pagination_function") is not None:
        raise Untranslatable("it reads several pages with a function of the file")
    conn = given.get("http_conn_id", "http_default")
    if not isinstance(conn, str) or "{{" in conn:
        raise Untranslatable("its connection is known only when the file is run")
    if any(given.get(name) is not None for name in ("response_filter", "response_check")) or not _is_plain_request(
        given
    ):
        _http_in_python(operator, task, builder, conn)
        return
    secret = builder.connection_secret(conn)
    builder.project.secrets[secret] = f"the base URL of the Airflow connection `{conn}`, such as https://example.org"
    name = identifier(conn)
    builder.project.executors[name] = {"class": "http", "config": {"base_url": {"secret": secret}}}
    method = given.get("method", "POST")
    config: dict[str, Any] = {
        "url": _path(given.get("endpoint"), operator, builder),
        "method": word(method, operator, builder),
    }
    data = given.get("data")
    headers = given.get("headers")
    if isinstance(headers, dict) and headers:
        config["headers"] = {key: word(value, operator, builder) for key, value in headers.items()}
    if data is not None and data != {}:
        if str(method).upper() == "GET" and isinstance(data, dict):
            config["params"] = {key: word(value, operator, builder) for key, value in data.items()}
        else:
            config["body"] = _body(data, operator, builder)
    task.keys["executor"], task.keys["config"] = name, config
    if given.get("extra_options"):
        task.note(Level.CHECK, "`extra_options` is not kept: `timeout` and `expect` in `config`")


def _is_plain_request(given: dict[str, Any]) -> bool:
    data, headers = given.get("data"), given.get("headers")
    is_simple = (
        data is None
        or isinstance(data, str)
        or (isinstance(data, dict) and all(isinstance(each, str | int) for each in data.values()))
    )
    return is_simple and (headers is None or isinstance(headers, dict))


def _http_in_python(operator: Operator, task: ImportedTask, builder: DagBuilder, conn: str) -> None:
    """A request whose response is checked or changed by a function."""
    from ork.importers.airflow.python_tasks import _write_wrapper

    given = operator.keywords
    builder.connection_secret(conn, operator.task_id)
    builder.project.requirements.add("requests")
    arguments = ArgumentCode(operator, builder)
    codes = [repr(conn)]
    for name in ("method", "endpoint", "data", "headers", "extra_options", "response_check", "response_filter"):
        if given.get(name) is not None:
            codes.append(f"{name}={arguments.code(given[name])}")
    builder.module.add_import(f"from {HOOKS} import run_http")
    _write_wrapper(operator, task, builder, arguments, "run_http", codes, "{0}")


def ssh(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    conn = operator.get("ssh_conn_id")
    if not isinstance(conn, str) or "{{" in conn or operator.mapped is not None:
        raise Untranslatable("its connection is known only when the file is run")
    command = operator.keywords.get("command")
    if command is None:
        raise Untranslatable("it has no command")
    secret = builder.connection_secret(conn, operator.task_id)
    builder.project.secrets[secret] = f"the Airflow connection `{conn}` as ssh://user@host:port"
    remote = word(command, operator, builder)
    task.keys["command"] = ["bash", "-c", f'ssh -o BatchMode=yes "${secret}" "$1"', "ssh", remote]
    env = environment_of(operator.keywords.get("environment"), operator, builder)
    if env:
        task.note(Level.CHECK, f"set {', '.join(env)} in the remote command: ssh passes no variables")
    task.note(Level.CHECK, "`ssh` uses the keys of the user that Ork runs as, not those of the connection")


def dbt(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    verb = operator.kind.removeprefix("Dbt").removesuffix("Operator").lower()
    given = operator.keywords
    words: list[Any] = ["dbt", "docs" if verb == "docsgenerate" else verb]
    words += ["generate"] if verb == "docsgenerate" else []
    for name, option in (
        ("models", "--select"),
        ("select", "--select"),
        ("exclude", "--exclude"),
        ("selector", "--selector"),
        ("target", "--target"),
        ("profiles_dir", "--profiles-dir"),
        ("dir", "--project-dir"),
    ):
        if operator.get(name) is not None:
            words += [option, word(operator.get(name), operator, builder)]
    if operator.get("vars"):
        import json

        if not is_known(operator.get("vars")):
            raise Untranslatable("its vars are known only when the file is run")
        words += ["--vars", word(json.dumps(operator.get("vars")), operator, builder)]
    words += ["--full-refresh"] if operator.get("full_refresh") is True else []
    task.keys["command"] = words
    if given.get("dbt_bin"):
        words[0] = word(given["dbt_bin"], operator, builder)
    task.note(Level.INFO, "`import: [{dbt: FOLDER}]` makes each model a task of its own")


def _path(endpoint: Any, operator: Operator, builder: DagBuilder) -> Any:
    if endpoint is None:
        return "/"
    found = word(endpoint, operator, builder)
    return f"/{found.lstrip('/')}" if isinstance(found, str) else found


def _body(data: Any, operator: Operator, builder: DagBuilder) -> Any:
    if isinstance(data, str):
        return word(data, operator, builder)
    if isinstance(data, dict) and not any(isinstance(value, dict | list) for value in data.values()):
        from urllib.parse import urlencode

        if is_known(data) and not any(has_template(value) for value in data.values()):
            return urlencode(data)
    raise Untranslatable("its body is known only when the file is run")


# Control.


def empty(_operator: Operator, task: ImportedTask, _builder: DagBuilder) -> None:
    task.keys["command"] = list(_NO_OPERATION)


def branch_python(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    python_task(operator, task, builder, "chosen({0})")


def short_circuit(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    python_task(operator, task, builder, "bool({0})")


def trigger_dag_run(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    target = operator.keywords.get("trigger_dag_id")
    if not isinstance(target, str) or "{{" in target:
        raise Untranslatable("the DAG to trigger is known only when the file is run")
    from ork.importers.project import safe_name

    task.keys["workflow"] = safe_name(target, "workflow")
    conf = operator.keywords.get("conf")
    if isinstance(conf, dict) and conf:
        task.keys["inputs"] = {
            key: word(value, operator, builder) if isinstance(value, str) else literal(value)
            for key, value in conf.items()
        }
        if not all(is_known(value) or isinstance(value, str) for value in conf.values()):
            raise Untranslatable("its `conf` is known only when the file is run")
        task.triggers = (task.keys["workflow"], list(conf))  # type: ignore[attr-defined]
    elif isinstance(conf, Unknown | str):
        raise Untranslatable("its `conf` is known only when the file is run")
    if operator.keywords.get("wait_for_completion") is not True:
        task.note(Level.CHECK, "the task waits for the other run here; Airflow went on at once")


def latest_only(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    name = f"{identifier(builder.names[operator.task_id])}_task"
    builder.module.add_import(f"from {MODULE} import is_latest")
    builder.module.uses_replacements = True
    builder.module.wrappers.append(
        f"def {name}(ctx):\n    return is_latest(ctx.scheduled_for, {builder.schedule.cron!r}, {builder.schedule.timezone!r})"
    )
    task.keys["file"], task.keys["function"] = builder.module.path, name


def email(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:  # noqa: ARG001
    raise Untranslatable("mails are alerts in Ork (`alerts` in ork.yaml), or a function with smtplib")


def not_in_images(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:  # noqa: ARG001
    raise Untranslatable(
        "its function runs in an image: build an image that has the function, and use `image` with `file`"
    )


TABLE: dict[str, Translator] = {
    "BashOperator": bash,
    "@task.bash": decorated_bash,
    "PythonOperator": python_task,
    "PythonVirtualenvOperator": python_task,
    "ExternalPythonOperator": python_task,
    "@task": python_task,
    "@task.virtualenv": python_task,
    "@task.external_python": python_task,
    "BranchPythonOperator": branch_python,
    "BranchPythonVirtualenvOperator": branch_python,
    "@task.branch": branch_python,
    "@task.branch_virtualenv": branch_python,
    "ShortCircuitOperator": short_circuit,
    "@task.short_circuit": short_circuit,
    "DockerOperator": docker,
    "KubernetesPodOperator": kubernetes_pod,
    "GKEStartPodOperator": kubernetes_pod,
    "EksPodOperator": kubernetes_pod,
    "SimpleHttpOperator": http,
    "HttpOperator": http,
    "EmptyOperator": empty,
    "DummyOperator": empty,
    "TriggerDagRunOperator": trigger_dag_run,
    "LatestOnlyOperator": latest_only,
    "SSHOperator": ssh,
    **{
        f"Dbt{verb}Operator": dbt
        for verb in ("Run", "Test", "Seed", "Snapshot", "Build", "Compile", "Deps", "Clean", "DocsGenerate")
    },
    "EmailOperator": email,
    "@task.docker": not_in_images,
    "@task.kubernetes": not_in_images,
}
