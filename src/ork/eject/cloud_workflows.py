"""A definition for Google's Workflows. It fits if every task is an HTTP request or a Cloud Run Job."""

from __future__ import annotations

import re
from typing import Any

import yaml

from ork.eject.plan import HTTP, in_order, opened
from ork.model.workflow import CloudRunJob, CompiledWorkflow, Const, Custom, Ref, RunIf, Secret, TaskSpec

_KNOWN = frozenset({"url", "method", "params", "headers", "json", "body", "timeout", "base_url"})


def fits_cloud_workflows(workflow: CompiledWorkflow) -> str | None:
    """Why it does not fit; None if it does."""
    for task in workflow.tasks:
        is_http = isinstance(task.action, Custom) and task.action.target == HTTP
        if not is_http and not isinstance(task.action, CloudRunJob):
            return f"`{task.name}` is neither an HTTP request nor a Cloud Run Job"
        if task.fans_out or task.when or task.run_if != RunIf.ALL_SUCCESS:
            return f"`{task.name}` has a fan-out or a condition"
        config = _config_of(task)
        if is_http and not set(config) <= _KNOWN:
            return f"`{task.name}` uses {', '.join(sorted(set(config) - _KNOWN))}"
        if _has_secret([config, *(value for _, value in task.inputs)]):
            return f"`{task.name}` uses a secret, which Workflows reads from Secret Manager"
    return None


def _config_of(task: TaskSpec) -> dict[str, Any]:
    if not isinstance(task.action, Custom):
        return {}
    return {**(opened(task.action.config) or {}), **(opened(task.action.task) or {})}


def _has_secret(value: Any) -> bool:
    if isinstance(value, Secret):
        return True
    if isinstance(value, dict):
        return any(map(_has_secret, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_secret, value))


def cloud_workflow_text(workflow: CompiledWorkflow) -> str:
    """The definition: tasks that do not depend on each other are branches of one parallel step."""
    names = {task.name: _variable(task.name) for task in workflow.tasks}
    defaults = {param.name: param.default for param in workflow.params}
    steps: list[Any] = [
        {
            "begin": {
                "assign": [
                    {"params": f"${{map.merge({_literal(defaults)}, default(args, {{}}))}}"},
                    *({name: None} for name in names.values()),
                ]
            }
        }
    ]
    for level, tasks in enumerate(_levels(workflow)):
        branches = [{f"branch_{names[task.name]}": {"steps": _task_steps(task, names)}} for task in tasks]
        if len(branches) == 1:
            steps += _task_steps(tasks[0], names)
        else:
            shared = [names[task.name] for task in tasks]
            steps.append({f"level_{level}": {"parallel": {"shared": shared, "branches": branches}}})
    last = [task.name for task in workflow.tasks if not any(task.name in other.depends_on for other in workflow.tasks)]
    result: Any = f"${{{names[last[0]]}}}" if len(last) == 1 else {name: f"${{{names[name]}}}" for name in last}
    steps.append({"finish": {"return": result}})
    head = f"# gcloud workflows deploy {workflow.name} --source=cloud-workflow.yaml\n"
    return head + yaml.safe_dump({"main": {"params": ["args"], "steps": steps}}, sort_keys=False, width=200)


def _levels(workflow: CompiledWorkflow) -> list[list[TaskSpec]]:
    depth: dict[str, int] = {}
    for task in in_order(workflow):
        depth[task.name] = max((depth[name] + 1 for name in task.depends_on), default=0)
    return [[task for task in workflow.tasks if depth[task.name] == level] for level in range(max(depth.values()) + 1)]


def _task_steps(task: TaskSpec, names: dict[str, str]) -> list[Any]:
    variable = names[task.name]
    if isinstance(task.action, CloudRunJob):
        call: dict[str, Any] = {
            "call": "googleapis.run.v1.namespaces.jobs.run",
            "args": {
                "name": f'${{"namespaces/" + sys.get_env("GOOGLE_CLOUD_PROJECT_ID") + "/jobs/{task.action.job}"}}',
                "location": '${sys.get_env("GOOGLE_CLOUD_LOCATION")}',
            },
            "result": variable,
        }
        return [{f"run_{variable}": _retried(task, call)}]
    config = _config_of(task)
    args: dict[str, Any] = {
        "url": _url(config, names),
        "method": str(_plain(config.get("method", "GET"), names)).upper(),
    }
    if config.get("headers"):
        args["headers"] = _plain(config["headers"], names)
    if config.get("params"):
        args["query"] = _plain(config["params"], names)
    body = config.get("json", config.get("body"))
    if body is None and args["method"] in ("POST", "PUT", "PATCH") and task.inputs:
        body = dict(task.inputs)
    if body is not None:
        args["body"] = _plain(body, names)
    args["timeout"] = config.get("timeout", 30)
    request = {"call": "http.request", "args": args, "result": f"{variable}_response"}
    keep = {"assign": [{variable: f"${{{variable}_response.body}}"}]}
    return [{f"run_{variable}": _retried(task, request)}, {f"keep_{variable}": keep}]


def _retried(task: TaskSpec, call: dict[str, Any]) -> dict[str, Any]:
    if not task.retries:
        return call
    delay = task.retry_delay if task.retry_delay is not None else 1
    backoff = {
        "initial_delay": delay,
        "max_delay": max(delay, 60),
        "multiplier": 1 if task.retry_delay is not None else 2,
    }
    retry = {"predicate": "${http.default_retry_predicate}", "max_retries": task.retries, "backoff": backoff}
    return {"try": call, "retry": retry}


def _url(config: dict[str, Any], names: dict[str, str]) -> Any:
    url, base = _plain(config["url"], names), config.get("base_url")
    if base is None or "://" in str(url) or str(url).startswith("${"):
        return url
    return f"{str(_plain(base, names)).rstrip('/')}/{str(url).lstrip('/')}"


def _plain(value: Any, names: dict[str, str]) -> Any:
    match value:
        case Const():
            return _plain(value.value, names)
        case Ref():
            return f"${{{_expression(value, names)}}}"
        case dict():
            return {key: _plain(each, names) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each, names) for each in value]
    return value


def _expression(ref: Ref, names: dict[str, str]) -> str:
    head, *rest = ref.path
    if head == "params":
        base = "params"
    elif head == "tasks":
        base, rest = names[str(rest[0])], rest[2:]
    else:
        return 'sys.get_env("GOOGLE_CLOUD_WORKFLOW_EXECUTION_ID")'
    return base + "".join(f"[{step}]" if isinstance(step, int) else f'["{step}"]' for step in rest)


def _literal(value: dict[str, Any]) -> str:
    import json

    return json.dumps(value)


def _variable(name: str) -> str:
    return re.sub(r"\W", "_", name)
