"""The action of a task, from `file`, `module`, `function` and `command`, and the executor that runs it."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from ork.definition.approvals import check_approval
from ork.definition.bindings import read_argument
from ork.definition.containers import CONTAINER, resolve_container
from ork.definition.custom import EXECUTORS, custom_name, is_stray_config, resolve_custom, resolve_notebook
from ork.definition.keys import Reading
from ork.definition.nodes import Kind, Node
from ork.definition.problems import quoted
from ork.definition.report import Suggester
from ork.definition.values import is_scalar, read_text
from ork.model.cloud_run import CLOUD_RUN
from ork.model.workflow import (
    Action,
    Approval,
    CloudRunJob,
    Command,
    Const,
    Isolation,
    PythonCall,
    RustProgram,
    SubWorkflow,
    Value,
)

# A task has exactly one of these keys.
ACTION_KEYS = ("file", "module", "command", "workflow", "approval", "job", "notebook")
EXECUTOR_ALIASES = {"shell": "process"}
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_QUOTING = re.compile(r"""['"\\]""")
_JOB = re.compile(r"(?:projects/[^/\s]+/locations/[^/\s]+/jobs/)?[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
_WORD = re.compile(r"[^ \t\r\n]+")
_QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
# Only at the beginning or end of a word: `&` and `;` inside one are often part of a URL.
_SHELL_OPERATOR = re.compile(r"(?<!\S)(?:(?:\|\|?|&&?)(?!\S)|&>|[0-9]*>>?|<)|;(?!\S)")


def read_executor(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is None:
        return None
    name = EXECUTOR_ALIASES.get(text, text)
    if name not in reading.executors:
        known = sorted(reading.executors)
        hint = Suggester([*known, *EXECUTOR_ALIASES]).hint(text) or f"known: {', '.join(known)}"
        reading.refuse("ORK601", f"there is no executor {quoted(text)}", node, hint=hint)
        return None
    return name


def read_path(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is not None and (not text.strip() or "\n" in text or text.endswith("/")):
        reading.refuse("ORK104", f"{quoted(text)} cannot be a file", node)
        return None
    return text


def read_module(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is not None and not all(_IDENTIFIER.fullmatch(part) for part in text.split(".")):
        hint = (
            "use `file:` for a path"
            if "/" in text or text.endswith(".py")
            else "write it as in `import`: `package.module`"
        )
        reading.refuse("ORK104", f"{quoted(text)} cannot be a module", node, hint=hint)
        return None
    return text


def read_function(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is not None and not _IDENTIFIER.fullmatch(text):
        reading.refuse("ORK104", f"{quoted(text)} cannot be a function", node, hint="write its name alone")
        return None
    return text


def read_command(node: Node, reading: Reading) -> Command | None:
    """A list is the program and its arguments; a string is split like in a shell, but no shell is used."""
    if is_scalar(node):
        return _command_from_text(node, reading)
    if node.kind != Kind.LIST:
        reading.expected("a command as text or a list", node)
        return None
    words = [read_argument(child, reading) for child in node.value]
    if not words:
        reading.refuse("ORK116", "the command is empty", node, hint="name a program")
    return None if not words or None in words else Command(tuple(word for word in words if word is not None))


def _command_from_text(node: Node, reading: Reading) -> Command | None:
    try:
        words, operators = _shell_words(node.value)
    except ValueError:
        hint = "close the quote, or write the command as a list"
        reading.refuse("ORK116", "the command has a quote that is never closed", node, hint=hint)
        return None
    if operators:
        hint = 'write `command: ["sh", "-c", "…"]` to have a shell run it'
        shown = quoted(operators[0])
        reading.refuse("ORK117", f"{shown} has no effect here: commands run without a shell", node, hint=hint)
        return None
    if not words:
        reading.refuse("ORK116", "the command is empty", node, hint="name a program")
        return None
    return Command(tuple(Const(word) for word in words))


def _shell_words(text: str) -> tuple[list[str], list[str]]:
    """The words, and the operators that only a shell understands. Quoted text is kept as it is."""
    if not _QUOTING.search(text):  # most commands; shlex is slow
        return _WORD.findall(text), _SHELL_OPERATOR.findall(text)
    import shlex

    return shlex.split(text), _SHELL_OPERATOR.findall(_QUOTED.sub("_", text))


def resolve_action(
    values: dict[str, Any], default_executor: str | None, body: Node, key: Node, reading: Reading
) -> tuple[str, Action] | None:
    """Executor and action of a task, or None if a problem was reported."""
    if "executor" not in values and body.is_written("executor"):
        return None  # already reported
    if _is_for_container(values, body):
        return resolve_container(values, body, key, reading)
    custom = custom_name(values, default_executor, body, reading)
    if custom is not None:
        return resolve_custom(custom, values, body, key, reading)
    if is_stray_config(values, body, key, reading):
        return None
    written = [name for name in ACTION_KEYS if body.is_written(name)]
    if len(written) > 1:
        place = body.get(written[1]) or key
        hint = f"keep one: {', '.join(f'`{name}`' for name in written)}"
        reading.refuse(
            "ORK115", f"task {quoted(key.value)} has both `{written[0]}` and `{written[1]}`", place, hint=hint
        )
        return None
    if not written:
        hint = (
            "add `file:`, `module:`, `command:` or `image:`; `workflow:` or `approval:` if nothing of its own is to run"
        )
        reading.refuse("ORK602", f"task {quoted(key.value)} has nothing to run", key, hint=hint)
        return None
    if written[0] not in values:
        return None  # already reported
    if written[0] == "approval":
        return (
            ("approval", Approval(values["approval"]["message"], values["approval"].get("not_by")))
            if check_approval(values, key, body, reading)
            else None
        )
    if written[0] == "job" or values.get("executor") == CLOUD_RUN:
        executor = values.get("executor") or default_executor
        return _cloud_run_job(written[0], executor, values, body, key, reading)
    if written[0] == "notebook":
        return resolve_notebook(values, body, key, reading)
    if written[0] == "workflow":
        return _sub_workflow(values, body, key, reading)
    if default_executor in reading.custom or default_executor in (CONTAINER, CLOUD_RUN):
        default_executor = None  # the default executor cannot run this action
    executor = values.get("executor") or _derived_executor(values, default_executor)
    return _combined(executor, values, body, key, reading)


def _sub_workflow(values: dict[str, Any], body: Node, key: Node, reading: Reading) -> tuple[str, Action] | None:
    wrong = next((name for name in ("executor", "function", "env", "cache") if name in values), None)
    if wrong is not None:
        message = f"task {quoted(key.value)} runs another workflow: `{wrong}` has no effect"
        reading.refuse("ORK115", message, body.get(wrong) or key, hint="set it on the tasks of that workflow")
        return None
    return "workflow", SubWorkflow(values["workflow"])


def _cloud_run_job(
    action: str, executor: str | None, values: dict[str, Any], body: Node, key: Node, reading: Reading
) -> tuple[str, Action] | None:
    if action != "job" or executor != CLOUD_RUN:
        message = f"task {quoted(key.value)}: `job` and `executor: {CLOUD_RUN}` go together"
        hint = f"write `executor: {CLOUD_RUN}` and `job: NAME`; other tasks run there by their worker config (`where: {CLOUD_RUN}`)"
        reading.refuse("ORK115", message, body.get(action) or key, hint=hint)
        return None
    wrong = next((name for name in ("function", "environment", "resources", "isolation") if name in values), None)
    if wrong is not None:
        message = f"task {quoted(key.value)} runs a Cloud Run Job that exists: `{wrong}` has no effect"
        reading.refuse("ORK115", message, body.get(wrong) or key, hint="set it on the Job itself")
        return None
    return CLOUD_RUN, CloudRunJob(values["job"], values.get("args", ()))


def read_job(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is not None and not _JOB.fullmatch(text):
        hint = "write its name, or projects/PROJECT/locations/REGION/jobs/NAME"
        reading.refuse("ORK104", f"{quoted(text)} cannot be a Cloud Run Job", node, hint=hint)
        return None
    return text


def _derived_executor(values: dict[str, Any], default: str | None) -> str:
    if "command" in values:
        return default if default and default != "python" else "process"
    if str(values.get("file")).endswith(".rs") and default in (None, "process", "rust"):
        return "rust"
    is_python = "module" in values or "function" in values or str(values["file"]).endswith(".py")
    if default and (default != "process" or not is_python):
        return default
    return "python" if is_python else "process"


def _combined(
    executor: str, values: dict[str, Any], body: Node, key: Node, reading: Reading
) -> tuple[str, Action] | None:
    if executor == "rust" or "args" in values:
        return _rust(executor, values, body, key, reading)
    calls_python = executor == "python" or (executor != "process" and "command" not in values)
    wrong = "command" if calls_python else next((name for name in ("module", "function") if name in values), None)
    if wrong in values:
        message = f"`{wrong}` cannot be used with the executor {quoted(executor)}"
        other = "process" if calls_python else "python"
        hint = f"write `executor: {other}`, or leave `executor` out: it follows from the rest"
        reading.refuse("ORK115", message, body.get(wrong) or key, hint=hint)
        return None
    if calls_python:
        return executor, PythonCall(values.get("file"), values.get("module"), values.get("function", "main"))
    if values.get("isolation") is Isolation.SHARED:
        message = f"task {quoted(key.value)} is a program: only Python functions can share a process"
        reading.refuse("ORK115", message, body.get("isolation") or key, hint="remove `isolation`")
        return None
    output = values.get("output")
    if output is not None and output.startswith("/"):
        message = f"task {quoted(key.value)} has no `image`: {quoted(output)} would be a file in a container"
        hint = "name the image to run, or write a path in $ORK_OUTPUT_DIR, such as result.parquet"
        reading.refuse("ORK609", message, body.get("output") or key, hint=hint)
        return None
    argv = values["command"].argv if "command" in values else (_script(values["file"]),)
    return executor, Command(argv, output)


def _rust(executor: str, values: dict[str, Any], body: Node, key: Node, reading: Reading) -> tuple[str, Action] | None:
    wrong = next((name for name in ("command", "module", "function") if name in values), None)
    if executor != "rust" or wrong is not None:
        message = f"`{wrong or 'args'}` cannot be used with the executor {quoted(executor)}"
        hint = "a Rust program is a `file`: its source, or the folder of its Cargo.toml; `args` are its arguments"
        reading.refuse("ORK115", message, body.get(wrong or "args") or key, hint=hint)
        return None
    return "rust", RustProgram(values["file"].rstrip("/"), values.get("args", ()))


def _script(file: str) -> Value:
    """A path, never a bare name, which would be looked up on PATH."""
    return Const(file if "/" in file else f"./{file}")


def known_or_default(executors: Collection[str] | None) -> frozenset[str]:
    return frozenset(EXECUTORS if executors is None else executors)


def _is_for_container(values: dict[str, Any], body: Node) -> bool:
    """True if the task uses a key that is only valid for containers."""
    is_command = body.is_written("command") or str(values.get("file", "")).endswith(".sh")
    names = ("image", "input") if is_command else ("image", "input", "output")
    return values.get("executor") == CONTAINER or any(body.is_written(name) for name in names)
