"""The content of tasks.json: what each task runs, with what, after what. And what an ejected workflow does not have."""

from __future__ import annotations

from typing import Any

from ork.model.trees import Tree
from ork.model.workflow import (
    Approval,
    CloudRunJob,
    Command,
    CompiledWorkflow,
    Condition,
    Const,
    Container,
    Custom,
    PythonCall,
    Ref,
    RustProgram,
    Secret,
    SubWorkflow,
    TaskSpec,
    Value,
)

# The classes behind `executor: http` and `executor: sql`.
HTTP, SQL = "ork.sdk.http:HttpExecutor", "ork.sdk.sql:SqlExecutor"


def plan_of(workflow: CompiledWorkflow, folder: str, script_dir: str | None) -> dict[str, Any]:
    """The JSON of tasks.json, with tasks in an order in which they can run. `folder` is relative to the project's."""
    return {
        "name": workflow.name,
        "fail_fast": workflow.fail_fast,
        "folder": folder,
        "pythonpath": ["", *workflow.pythonpath],
        "script_dir": script_dir,
        "params": {
            param.name: {"type": param.type, "required": param.required, "default": param.default}
            for param in workflow.params
        },
        "tasks": {task.name: _task(task) for task in in_order(workflow)},
    }


def in_order(workflow: CompiledWorkflow) -> list[TaskSpec]:
    """The tasks, each after those that it depends on."""
    waiting, done, ordered = list(workflow.tasks), set[str](), []
    while waiting:
        ready = [task for task in waiting if set(task.depends_on) <= done]
        ordered += ready
        done |= {task.name for task in ready}
        waiting = [task for task in waiting if task.name not in done]
    return ordered


def _task(task: TaskSpec) -> dict[str, Any]:
    return {
        "action": _action(task),
        "depends_on": list(task.depends_on),
        "inputs": {name: _value(value) for name, value in task.inputs},
        "env": {name: _value(value) for name, value in task.env},
        "retries": task.retries,
        "retry_delay": task.retry_delay,
        "retry_on": sorted(each.value for each in task.retry_on),
        "timeout": task.timeout,
        "run_if": task.run_if.value,
        "when": [_condition(each) for each in task.when],
        "foreach": None if task.foreach is None else _value(task.foreach),
        "parallel": _value(task.parallel) if isinstance(task.parallel, Ref) else task.parallel,
        "concurrency": task.concurrency,
    }


def _condition(condition: Condition) -> dict[str, Any]:
    return {"ref": list(condition.ref.path), "op": condition.op.value, "value": condition.value}


def _value(value: Value) -> dict[str, Any]:
    match value:
        case Const():
            return {"const": value.value}
        case Ref():
            return {"ref": list(value.path)}
        case Secret():
            return {"secret": value.name}


def opened(tree: Tree | None) -> Any:
    """A config as plain data, with `Ref` and `Secret` where it has them."""
    match tree:
        case None:
            return None
        case {"map": members}:
            return {name: opened(member) for name, member in members.items()}
        case {"list": items}:
            return [opened(item) for item in items]
        case {"ref": path}:
            return Ref(tuple(path))
        case {"secret": name}:
            return Secret(name)
    return tree["const"]


def _config(value: Any) -> Any:
    """A config with its references and secrets marked."""
    match value:
        case Ref():
            return {"$ref": list(value.path)}
        case Secret():
            return {"$secret": value.name}
        case dict():
            return {key: _config(each) for key, each in value.items()}
        case list() | tuple():
            return [_config(each) for each in value]
    return value


def _action(task: TaskSpec) -> dict[str, Any]:
    match task.action:
        case PythonCall() if task.image is None:
            action = task.action
            return {"kind": "function", "file": action.file, "module": action.module, "function": action.function}
        case Command():
            return {"kind": "command", "argv": [_value(word) for word in task.action.argv]}
        case Container():
            action_of = task.action
            return {
                "kind": "container",
                "image": task.image,
                "argv": [_value(word) for word in action_of.argv],
                "to_file": action_of.to_file,
                "from_file": action_of.from_file,
            }
        case SubWorkflow():
            return {"kind": "workflow", "name": task.action.name}
        case Approval():
            return {"kind": "approval", "message": task.action.message}
        case Custom() if task.action.target in (HTTP, SQL):
            kind = "http" if task.action.target == HTTP else "sql"
            return {
                "kind": kind,
                "shared": _config(opened(task.action.config)),
                "config": _config(opened(task.action.task)),
            }
        case CloudRunJob():
            words = ["gcloud", "run", "jobs", "execute", task.action.job, "--wait"]
            return {"kind": "command", "argv": [{"const": word} for word in words]}
    message = f"{task.name} does not fit: {_misfit(task)}"
    return {
        "kind": "command",
        "argv": [{"const": word} for word in ("sh", "-c", 'echo "$1" >&2; exit 64', "task", message)],
    }


def _misfit(task: TaskSpec) -> str | None:
    """Why a task cannot be ejected; None if it can."""
    match task.action:
        case RustProgram():
            return "Rust programs are built by Ork: build it, and call it as a command"
        case Custom() if task.action.target not in (HTTP, SQL):
            return f"it runs the executor {task.action.target} of the project: call it from a function"
        case PythonCall() if task.image is not None:
            return "its function is inside an image: `docker run` it with a command"
    return None


def misfits(workflow: CompiledWorkflow) -> list[str]:
    """What the ejected workflow does not do, one sentence each."""
    found = [f"`{task.name}`: {reason}" for task in workflow.tasks if (reason := _misfit(task)) is not None]
    for task in workflow.tasks:
        unkept = [
            name for name in ("pool", "rate", "cache", "environment", "resources", "worker") if getattr(task, name)
        ]
        if unkept:
            found.append(f"`{task.name}`: {', '.join(f'`{name}`' for name in unkept)} has no effect here")
        if isinstance(task.action, CloudRunJob) and task.action.args:
            found.append(f"`{task.name}`: its `args` are not passed to the job")
    if workflow.alerts:
        found.append("`alerts`: nobody is told about failures; the exit code is 1")
    if workflow.budget is not None:
        found.append("`budget` has no effect here")
    if workflow.schedule is not None:
        found.append("`schedule`: cronjob.yaml has it; on a machine use cron. Missed times are not caught up")
    if any(param.sensitive for param in workflow.params):
        found.append("sensitive params are stored as plain text in out/run.json")
    if secrets_of(workflow):
        found.append("secrets are read from environment variables of the same name, and are not masked in logs")
    return found


def secrets_of(workflow: CompiledWorkflow) -> list[str]:
    """The names of all secrets that tasks use."""
    found: set[str] = set()

    def walk(value: Any) -> None:
        if isinstance(value, Secret):
            found.add(value.name)
        elif isinstance(value, dict):
            for each in value.values():
                walk(each)
        elif isinstance(value, list | tuple):
            for each in value:
                walk(each)

    for task in workflow.tasks:
        walk([value for _, value in (*task.env, *task.inputs)])
        if isinstance(task.action, Custom):
            walk([opened(task.action.config), opened(task.action.task)])
    return sorted(found)
