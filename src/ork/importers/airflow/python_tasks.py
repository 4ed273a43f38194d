"""Tasks that call functions: the function is copied, and called directly or by a small function with its arguments."""

from __future__ import annotations

import ast
from typing import Any

from ork.importers.airflow.arguments import ArgumentCode, copy_function, foreach, input_value
from ork.importers.airflow.dag_builder import MODULE, DagBuilder
from ork.importers.airflow.objects import Operator, TaskFunction, TaskOutput
from ork.importers.airflow.templates import CONTEXT_NAMES
from ork.importers.project import ImportedTask, Level, Untranslatable, identifier
from ork.importers.python.extract import Missing
from ork.importers.python.values import ForeignCall, Imported, SourceFunction, Unknown

HOOK_CONNECTIONS = {
    "PostgresHook": "postgres_default",
    "MySqlHook": "mysql_default",
    "SqliteHook": "sqlite_default",
    "MsSqlHook": "mssql_default",
    "HttpHook": "http_default",
}


def callable_of(operator: Operator) -> Any:
    """The function that a task calls: decorated, or `python_callable`."""
    if operator.function is not None:
        return operator.function
    value = operator.keywords.get("python_callable")
    return value.function if isinstance(value, TaskFunction) else value


def prepare(operator: Operator, builder: DagBuilder) -> None:
    """Copies the function and notes what it reads: variables, connections, pushed values."""
    function = callable_of(operator)
    if isinstance(function, ForeignCall) and function.function.last == "partial" and function.args:
        function = function.args[0]
    if operator.custom is not None:
        node: Any = operator.custom.node
        operator.missing = copy_class(operator.custom, builder)  # type: ignore[attr-defined]
    elif isinstance(function, SourceFunction):
        node = function.node
        operator.missing = copy_function(function, builder)  # type: ignore[attr-defined]
    else:
        return
    for statement in builder.files.reachable(node):
        _facts(statement, operator, builder)


def copy_class(custom: Any, builder: DagBuilder) -> list[Missing]:
    name = custom.node.name
    if custom.scope.module is builder.dag.module:
        return builder.module._need_name(name, custom.scope, custom.node.lineno)
    builder.module.add_import(f"from {custom.scope.module.name} import {name}")
    return builder.files.need(custom.scope.module, name)


def _facts(statement: ast.AST, operator: Operator, builder: DagBuilder) -> None:
    for each in ast.walk(statement):
        if isinstance(each, ast.Raise) and each.exc is not None and "AirflowSkipException" in ast.unparse(each.exc):
            builder.skipping.add(operator.task_id)
        if not isinstance(each, ast.Call):
            continue
        name = ast.unparse(each.func)
        first = each.args[0].value if each.args and isinstance(each.args[0], ast.Constant) else None
        keywords = {key.arg: key.value.value for key in each.keywords if isinstance(key.value, ast.Constant)}
        if name.endswith(".xcom_push"):
            builder.pushing.add(operator.task_id)
        elif name.endswith("Variable.get"):
            has_default = len(each.args) > 1 or any(key.arg in ("default_var", "default") for key in each.keywords)
            if isinstance(first, str) and not has_default:
                builder.variable_secret(first, operator.task_id)
            elif isinstance(first, str):
                builder.project.pass_env.append(f"AIRFLOW_VAR_{first.upper()}")
        elif name.endswith("get_connection") and isinstance(first or keywords.get("conn_id"), str):
            builder.connection_secret(str(first or keywords["conn_id"]), operator.task_id)
        elif name.rpartition(".")[2] in HOOK_CONNECTIONS:
            given = next((value for key, value in keywords.items() if key and key.endswith("conn_id")), first)
            is_computed = not isinstance(given, str) and (
                each.args or any((key.arg or "").endswith("conn_id") for key in each.keywords)
            )
            if not is_computed:
                conn = given if isinstance(given, str) else HOOK_CONNECTIONS[name.rpartition(".")[2]]
                builder.connection_secret(conn, operator.task_id)


def python_task(operator: Operator, task: ImportedTask, builder: DagBuilder, form: str = "{0}") -> None:
    """Writes a task that calls its function. `form` is what becomes of the result: `bool({0})`, `chosen({0})`."""
    function = callable_of(operator)
    args, keywords = _given(operator)
    if isinstance(function, ForeignCall) and function.function.last == "partial" and function.args:
        args, keywords = [*function.args[1:], *args], {**function.keywords, **keywords}
        function = function.args[0]
    if isinstance(function, Imported):
        _installed(function, operator, task, builder, args, keywords, form)
        return
    if not isinstance(function, SourceFunction):
        raise Untranslatable("its function is known only when the file is run")
    missing: list[Missing] = getattr(operator, "missing", [])
    if missing:
        raise Untranslatable(f"{missing[0].reason} (line {missing[0].line})")
    builder.use_module()
    environment(operator, task)
    if form == "{0}" and _direct(operator, function, args, keywords, task, builder):
        return
    _wrapped(operator, function, args, keywords, task, builder, form)


def _given(operator: Operator) -> tuple[list[Any], dict[str, Any]]:
    given = operator.keywords.get("op_kwargs", operator.keywords.get("op_kwargs") or {})
    positional = operator.args if operator.function is not None else operator.keywords.get("op_args", [])
    if isinstance(positional, TaskOutput | Unknown) or isinstance(given, TaskOutput | Unknown):
        raise Untranslatable("its arguments are known only when the file is run")
    return list(positional or []), dict(given or {})


def environment(operator: Operator, task: ImportedTask) -> None:
    requirements = operator.keywords.get("requirements")
    if ("virtualenv" in operator.kind.lower() or "external_python" in operator.kind) and isinstance(requirements, list):
        if not all(isinstance(each, str) for each in requirements):
            raise Untranslatable("its requirements are known only when the file is run")
        task.keys["environment"] = {"requirements": requirements}


def _direct(
    operator: Operator,
    function: SourceFunction,
    args: list[Any],
    keywords: dict[str, Any],
    task: ImportedTask,
    builder: DagBuilder,
) -> bool:
    """Names the function in YAML, with its arguments as inputs. False if they need code."""
    if isinstance(function.node, ast.Lambda) or function.node.args.vararg or function.node.args.posonlyargs:
        return False
    if operator.task_id in builder.pushing or operator.task_id in builder.skipping or needs_context(function, keywords):
        return False
    inputs = dict(zip(function.parameters, args, strict=False)) | keywords
    if len(args) > len(function.parameters) or not set(inputs) <= set(function.parameters):
        return False
    mapped = operator.mapped or {}
    if set(mapped) & set(inputs) or (mapped and not _plain_mapping(operator, function)):
        return False
    required = [name for name in function.parameters if name not in function.defaults]
    if not set(required) <= set(inputs) | set(mapped) or "ctx" in function.parameters or "**" in keywords:
        return False
    try:
        written = {name: input_value(value, builder) for name, value in inputs.items()}
    except Untranslatable:
        return False
    _name_function(function, task, builder)
    written |= foreach(operator, task, builder)
    # A parameter without a value must not receive one by its name.
    clashes = [
        name
        for name in function.defaults
        if name not in written and (name in builder.names.values() or name in builder.workflow.keys.get("params", {}))
    ]
    if clashes:
        return False
    if written:
        task.keys["inputs"] = written
    return True


def _plain_mapping(operator: Operator, function: SourceFunction) -> bool:
    mapped = operator.mapped or {}
    return not operator.is_mapped_by_item and set(mapped) <= set(function.parameters)


def _name_function(function: SourceFunction, task: ImportedTask, builder: DagBuilder) -> None:
    module = function.scope.module
    assert module is not None
    own = module is builder.dag.module
    task.keys["file"] = builder.module.path if own else module.name.replace(".", "/") + ".py"
    task.keys["function"] = function.name


def needs_context(function: SourceFunction, given: dict[str, Any]) -> bool:
    names = [
        name
        for name in function.parameters
        if name in CONTEXT_NAMES and name not in given and name not in function.defaults
    ]
    none = [
        name
        for name in function.parameters
        if name in CONTEXT_NAMES and name not in given and _defaults_to_none(function, name)
    ]
    return bool(names or none) or _uses_keywords(function) or _asks_for_context(function)


def _defaults_to_none(function: SourceFunction, name: str) -> bool:
    return name in function.defaults


def _uses_keywords(function: SourceFunction) -> bool:
    """Whether it has `**context` and reads it."""
    keyword = function.node.args.kwarg
    if keyword is None:
        return False
    body = function.node.body if isinstance(function.node.body, list) else [function.node.body]
    return any(isinstance(each, ast.Name) and each.id == keyword.arg for item in body for each in ast.walk(item))


def _asks_for_context(function: SourceFunction) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "get_current_context" for each in ast.walk(function.node))


def _wrapped(
    operator: Operator,
    function: SourceFunction,
    args: list[Any],
    keywords: dict[str, Any],
    task: ImportedTask,
    builder: DagBuilder,
    form: str,
) -> None:
    """Writes a function that calls the original with its arguments."""
    arguments = ArgumentCode(operator, builder)
    mapped = operator.mapped or {}
    items: dict[str, Any] = {}
    if operator.is_mapped_by_item:
        foreach(operator, task, builder)
    elif mapped:
        items = {name: "item" if len(mapped) == 1 else f"item[{name!r}]" for name in mapped}
        foreach(operator, task, builder)
    codes = [arguments.code(value) for value in args]
    codes += [f"{name}={arguments.code(value)}" for name, value in keywords.items() if name != "**"]
    codes += [f"{name}={code}" for name, code in items.items()]
    codes += ["**item"] if operator.is_mapped_by_item else []
    given = {*keywords, *items, *function.parameters[: len(args)]}
    wants = needs_context(function, dict.fromkeys(given))
    if wants:
        arguments.uses_context = True
        codes += [
            f"{name}=context[{name!r}]" for name in function.parameters if name in CONTEXT_NAMES and name not in given
        ]
        for name in _pulled_by(function, operator, builder):
            arguments.output_parameter(name)
    if _uses_keywords(function):
        known = sorted(given | set(function.parameters))
        codes.append(f"**rest(context, {', '.join(map(repr, known))})" if known else "**context")
        builder.module.add_import(f"from {MODULE} import rest")
    _write_wrapper(operator, task, builder, arguments, called_name(function), codes, form)


def called_name(function: SourceFunction) -> str:
    return f"({ast.unparse(function.node)})" if isinstance(function.node, ast.Lambda) else function.name


def _pulled_by(function: SourceFunction, operator: Operator, builder: DagBuilder) -> list[str]:
    """The tasks whose outputs the function may ask for: those it names, else all upstream tasks."""
    found: list[str] = []
    is_open = False
    for statement in (
        builder.files.reachable(function.node) if not isinstance(function.node, ast.Lambda) else [function.node]
    ):
        for each in ast.walk(statement):
            if isinstance(each, ast.Call) and ast.unparse(each.func).endswith(".xcom_pull"):
                given = [*each.args[:1], *(key.value for key in each.keywords if key.arg == "task_ids")]
                names = [item.value for value in given for item in ast.walk(value) if isinstance(item, ast.Constant)]
                found += [name for name in names if isinstance(name, str)]
                is_open = is_open or not names
    known = [
        name
        for name in dict.fromkeys(found)
        if name in builder.names and builder.names[name] != builder.names[operator.task_id]
    ]
    later = [name for name in known if _is_downstream(name, operator, builder)]
    return [name for name in known if name not in later] + (
        [each.task_id for each in operator.upstream if each.task_id not in known] if is_open else []
    )


def _is_downstream(task_id: str, operator: Operator, builder: DagBuilder) -> bool:
    """Whether the named task runs after this one; waiting for it would never end."""
    start = next(each for each in builder.dag.tasks if each.task_id == task_id)
    waiting, seen = [start], {id(start)}
    while waiting:
        current = waiting.pop()
        if current is operator:
            return True
        for each in current.upstream:
            if id(each) not in seen:
                seen.add(id(each))
                waiting.append(each)
    return False


def _write_wrapper(
    operator: Operator,
    task: ImportedTask,
    builder: DagBuilder,
    arguments: ArgumentCode,
    called: str,
    codes: list[str],
    form: str,
) -> None:
    pushes, skips = operator.task_id in builder.pushing, operator.task_id in builder.skipping
    uses_context = arguments.uses_context or pushes or skips
    name = f"{identifier(builder.names[operator.task_id])}_task"
    parameters = [
        *(["ctx"] if uses_context else []),
        *(f"{each}=None" for each in arguments.inputs),
        *(["item=None"] if operator.mapped else []),
    ]
    lines = [f"def {name}({', '.join(parameters)}):"]
    if uses_context:
        builder.module.add_import(f"from {MODULE} import context_of")
        lines.append(f"    context = context_of(ctx, **DAG_FACTS{_context_options(operator, arguments, builder)})")
    if pushes or skips:
        builder.module.add_import(f"from {MODULE} import call")
        made = f"call({', '.join([called, 'context', *codes, *(['pushes=True'] if pushes else [])])})"
    else:
        made = f"{called}({', '.join(codes)})"
    for helper in ("chosen", "run_bash", "macros"):
        if f"{helper}(" in form or f"{helper}." in "".join(codes):
            builder.module.add_import(f"from {MODULE} import {helper}")
    lines.append(f"    return {form.format(made)}")
    add_code("\n".join(lines), builder)
    builder.module.uses_replacements = (
        builder.module.uses_replacements or uses_context or "chosen(" in form or "run_bash(" in form
    )
    builder.use_module()
    task.keys["file"], task.keys["function"] = builder.module.path, name
    if arguments.inputs:
        task.keys["inputs"] = {**task.keys.get("inputs", {}), **arguments.inputs}


def add_code(text: str, builder: DagBuilder) -> None:
    """Adds a function to the workflow's module, once it is known to be Python."""
    try:
        ast.parse(text)
    except SyntaxError as error:
        raise Untranslatable(f"the call of its function is not Python: {error.msg}") from error
    builder.module.wrappers.append(text)


def _context_options(operator: Operator, arguments: ArgumentCode, builder: DagBuilder) -> str:
    options = f", task_id={operator.task_id!r}"
    if arguments.outputs:
        pairs = ", ".join(f"{task!r}: {parameter}" for task, parameter in arguments.outputs.items())
        options += f", outputs={{{pairs}}}"
        pushing = sorted(set(arguments.outputs) & builder.pushing)
        options += f", pushing=frozenset({pushing!r})" if pushing else ""
    own = operator.keywords.get("params")
    if isinstance(own, dict) and own:
        options += f", params={arguments.code(own)}"
    return options


def _installed(
    function: Imported,
    operator: Operator,
    task: ImportedTask,
    builder: DagBuilder,
    args: list[Any],
    keywords: dict[str, Any],
    form: str,
) -> None:
    """A function of an installed package: called by its module."""
    module, _, name = function.dotted.rpartition(".")
    if module.partition(".")[0] == "airflow" or not module:
        raise Untranslatable(f"its function is `{function.dotted}`")
    if module == "builtins":
        _call_installed(name, operator, task, builder, args, keywords, form)
        return
    builder.files.require(module)
    if not args and form == "{0}" and operator.mapped is None:
        try:
            inputs = {key: input_value(value, builder) for key, value in keywords.items()}
        except Untranslatable:
            inputs = None
        if inputs is not None:
            task.keys |= {"module": module, "function": name} | ({"inputs": inputs} if inputs else {})
            task.note(Level.CHECK, f"`{function.dotted}` is called without Airflow's context; it must be installed")
            return
    builder.module.add_import(f"from {module} import {name}")
    _call_installed(name, operator, task, builder, args, keywords, form)


def _call_installed(
    name: str,
    operator: Operator,
    task: ImportedTask,
    builder: DagBuilder,
    args: list[Any],
    keywords: dict[str, Any],
    form: str,
) -> None:
    arguments = ArgumentCode(operator, builder)
    codes = [arguments.code(value) for value in args] + [
        f"{key}={arguments.code(value)}" for key, value in keywords.items()
    ]
    if operator.mapped is not None:
        raise Untranslatable("it maps a function of a package")
    _write_wrapper(operator, task, builder, arguments, name, codes, form)


def custom_task(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    """An operator that the sources define: it is made and executed as Airflow does it."""
    missing: list[Missing] = getattr(operator, "missing", [])
    if missing:
        raise Untranslatable(f"{missing[0].reason} (line {missing[0].line})")
    if operator.mapped is not None:
        raise Untranslatable("a mapped operator of your own")
    assert operator.custom is not None
    arguments = ArgumentCode(operator, builder)
    arguments.uses_context = True
    given = {key: value for key, value in operator.keywords.items() if key not in _TASK_SETTINGS}
    codes = [f"task_id={operator.task_id!r}"]
    codes += [f"{key}={arguments.code(value)}" for key, value in given.items() if key != "**"]
    for each in operator.upstream:
        if each.task_id in builder.names:
            arguments.output_parameter(each.task_id)
    is_sensor = _has_method(operator.custom, "poke") and not _has_method(operator.custom, "execute")
    method = "poke_until_true" if is_sensor else "execute"
    form = f"{operator.custom.node.name}({', '.join(codes)}).{method}"
    if is_sensor:
        task.note(Level.CHECK, "this sensor keeps its process while it waits; a deferrable task would not")
    if "branch" in operator.kind.lower():
        builder.module.add_import(f"from {MODULE} import chosen")
    _write_wrapper(
        operator,
        task,
        builder,
        arguments,
        form,
        ["context"],
        "chosen({0})" if "branch" in operator.kind.lower() else "{0}",
    )


def _has_method(custom: Any, name: str) -> bool:
    own = any(isinstance(each, ast.FunctionDef) and each.name == name for each in custom.node.body)
    return own or any(_has_method(base, name) for base in custom.bases if hasattr(base, "node"))


_TASK_SETTINGS = frozenset(
    [
        "retries",
        "retry_delay",
        "execution_timeout",
        "pool",
        "priority_weight",
        "trigger_rule",
        "on_failure_callback",
        "on_success_callback",
        "on_retry_callback",
        "depends_on_past",
        "owner",
        "email",
        "queue",
        "sla",
        "start_date",
        "end_date",
        "provide_context",
        "wait_for_downstream",
        "weight_rule",
        "retry_exponential_backoff",
        "max_retry_delay",
        "email_on_failure",
        "email_on_retry",
        "doc_md",
        "doc",
        "task_concurrency",
        "max_active_tis_per_dag",
        "params",
        "run_as_user",
        "executor_config",
        "inlets",
        "outlets",
        "default_args",
        "pool_slots",
        "task_display_name",
    ]
)
