"""Builds the workflow of a DAG: names, keys, tasks, edges, and the module with its functions."""

from __future__ import annotations

import ast
import json
from datetime import datetime, timedelta
from typing import Any

from ork.importers.airflow.objects import Dag, Operator, TaskGroup
from ork.importers.airflow.schedules import DagSchedule, schedule_of
from ork.importers.project import (
    ImportedProject,
    ImportedTask,
    ImportedWorkflow,
    Level,
    Untranslatable,
    identifier,
    safe_name,
    unique_name,
)
from ork.importers.python.evaluate import Evaluator
from ork.importers.python.extract import CopiedFiles, CopiedModule
from ork.importers.python.values import ForeignCall, NameScope, SourceFunction, is_known

HELPER = "airflow_values"
MODULE = "from_airflow"
HOOKS = "from_airflow_hooks"
TRIGGER_RULES = {
    "all_success": None,
    "all_done": "all_done",
    "always": "all_done",
    "dummy": "all_done",
    "one_failed": "any_failed",
    "one_success": "any_success",
    "one_done": "all_done",
    "all_failed": "any_failed",
    "none_failed": "any_success",
    "none_failed_or_skipped": "any_success",
    "none_failed_min_one_success": "any_success",
    "none_skipped": "all_done",
    "all_done_min_one_success": "any_success",
    "all_done_setup_success": "all_done",
}
_EXACT_RULES = ("all_success", "all_done", "always", "dummy", "one_failed", "one_success", "all_done_min_one_success")
_CALLBACKS = (
    "on_failure_callback",
    "on_retry_callback",
    "on_success_callback",
    "sla_miss_callback",
    "on_execute_callback",
)


class DagBuilder:
    def __init__(self, dag: Dag, project: ImportedProject, files: CopiedFiles, evaluator: Evaluator) -> None:
        self.dag = dag
        self.project = project
        self.files = files
        self.evaluator = evaluator
        self.workflow = ImportedWorkflow(project.workflow_name(dag.dag_id), dag.place)
        project.workflows.append(self.workflow)
        self.module: CopiedModule = files.new(dag.module, f"{identifier(self.workflow.name)}_tasks.py")
        self.names: dict[str, str] = {}
        self.pushing: set[str] = set()
        self.skipping: set[str] = set()
        self.secrets: dict[str, set[str]] = {}
        self.values: dict[str, str] = {}
        self.schedule = DagSchedule()
        self.uses_module = False
        self.pulled: set[str] = set()

    # The workflow.

    def build(self) -> ImportedWorkflow:
        from ork.importers.airflow.operators import translate
        from ork.importers.airflow.python_tasks import prepare

        self._name_tasks()
        self._connect()
        self._keys()
        for operator in self.dag.tasks:
            prepare(operator, self)
        self.pulled |= _pulled_in_sources(self.dag.module.text)
        for operator in self.dag.tasks:
            task = self.workflow.add(ImportedTask(self.names[operator.task_id], operator.kind, operator.place))
            task.depends_on = [self.names[each.task_id] for each in operator.upstream if each.task_id in self.names]
            try:
                self._rule(operator, task)
                translate(operator, task, self)
                self._shared_keys(operator, task)
            except Untranslatable as reason:
                task.leave_to_a_person(str(reason))
        self._conditions()
        self._add_values()
        self._write_module()
        for text, place in self.dag.problems:
            self.workflow.note(Level.PERSON, text, place)
        return self.workflow

    def _name_tasks(self) -> None:
        taken: set[str] = {HELPER}
        for operator in self.dag.tasks:
            if operator.task_id in self.names:
                self.workflow.note(Level.CHECK, f"the task id `{operator.task_id}` is used twice", operator.place)
                operator.task_id = unique_name(operator.task_id, set(self.names))
            name = unique_name(safe_name(operator.task_id), taken)
            taken.add(name)
            self.names[operator.task_id] = name

    def _connect(self) -> None:
        """Adds the edges to the tasks. An edge of a group holds for its first or last tasks."""
        pairs = {(id(each), id(task)) for task in self.dag.tasks for each in task.upstream}
        inner = [
            (left, right)
            for left, right in self.dag.edges
            if isinstance(left, Operator) and isinstance(right, Operator)
        ]
        for left, right in inner:
            _link(left, right, pairs)
        for left, right in self.dag.edges:
            if isinstance(left, TaskGroup) or isinstance(right, TaskGroup):
                for before in _ends(left, is_last=True):
                    for after in _ends(right, is_last=False):
                        _link(before, after, pairs)
        for task in self.dag.tasks:
            task.upstream = [each for each in dict.fromkeys(task.upstream) if each is not task and each.dag is self.dag]

    def _keys(self) -> None:
        given, workflow = self.dag.keywords, self.workflow
        description = given.get("description") or given.get("doc_md")
        if isinstance(description, str) and description.strip():
            workflow.keys["description"] = " ".join(description.split())[:300]
        self.schedule = schedule_of(self.dag, workflow)
        self._params()
        defaults = self._task_keys(self.dag.defaults, None)
        if defaults:
            workflow.keys["defaults"] = defaults
        active = given.get("max_active_runs")
        if isinstance(active, int) and active > 0:
            workflow.keys["max_active_runs"] = active
        if self.dag.defaults.get("depends_on_past") is True:
            workflow.keys["max_active_runs"] = 1
            workflow.note(
                Level.CHECK, "`depends_on_past` became `max_active_runs: 1`: a failed run does not stop the next one"
            )
        if given.get("fail_stop") is True or given.get("fail_fast") is True:
            workflow.keys["fail_fast"] = True
        self._workflow_notes()

    def _workflow_notes(self) -> None:
        given, defaults = self.dag.keywords, self.dag.defaults
        callbacks = [name for name in _CALLBACKS if given.get(name) is not None or defaults.get(name) is not None]
        if callbacks:
            self.workflow.note(Level.CHECK, f"{', '.join(callbacks)}: use `alerts` in the workflow and in ork.yaml")
        self._mails(defaults.get("email"), defaults.get("email_on_failure"))
        if given.get("dagrun_timeout") is not None:
            self.workflow.note(Level.CHECK, "`dagrun_timeout` is not kept: `timeout` limits tasks")
        if any(given.get(name) is not None for name in ("max_active_tasks", "concurrency")):
            self.workflow.note(Level.INFO, "the limit of tasks at once is not kept: use a `pool`")

    def _mails(self, address: Any, on_failure: Any) -> None:
        """`email` of `default_args`, which Airflow uses for failures unless that is switched off."""
        if not address or on_failure is False:
            return
        to = address.replace(";", ",").split(",") if isinstance(address, str) else address
        if isinstance(to, list | tuple) and all(isinstance(each, str) and "{{" not in each for each in to):
            people = [each.strip() for each in to if each.strip()]
            self.project.mail_alert(self.workflow, people, f"`email` {', '.join(people)}", self.dag.place)
        else:
            self.workflow.note(Level.CHECK, "mails about failures: use `alerts` in the workflow and in ork.yaml")

    # Params.

    def _params(self) -> None:
        given = self.dag.keywords.get("params")
        for name, value in (given if isinstance(given, dict) else {}).items():
            if isinstance(name, str):
                self._declare(name, *_param(value))
        if self.dag.function is not None:
            for name in self.dag.function.parameters:
                default = self.dag.function.defaults.get(name)
                value = self.evaluator.value(default, self.dag.function.scope) if default is not None else None
                self._declare(name, *_param(value))

    def declare_param(self, name: str, default: Any = None, operator: Operator | None = None) -> None:
        own = operator.keywords.get("params") if operator is not None else None
        if not (isinstance(own, dict) and name in own):
            self._declare(name, default if default is not ... else None, None)

    def _declare(self, name: str, default: Any, description: str | None) -> None:
        params = self.workflow.keys.setdefault("params", {})
        if name not in params and name.replace("-", "_").isidentifier():
            params[name] = {"default": default} | ({"description": description} if description else {})

    # Keys of tasks.

    def _task_keys(self, given: dict[str, Any], task: ImportedTask | None) -> dict[str, Any]:
        keys: dict[str, Any] = {}
        retries = given.get("retries")
        if isinstance(retries, int) and not isinstance(retries, bool) and 0 <= retries <= 1000 and (retries or task):
            keys["retries"] = retries
        delay = given.get("retry_delay")
        if isinstance(delay, int | float) and not isinstance(delay, bool):
            delay = timedelta(seconds=delay)
        if isinstance(delay, timedelta) and given.get("retry_exponential_backoff") is not True:
            keys["retry_delay"] = duration_text(delay)
        elif keys.get("retries") and given.get("retry_exponential_backoff") is not True and task is None:
            keys["retry_delay"] = "5m"  # Airflow's default
        timeout = given.get("execution_timeout")
        if isinstance(timeout, timedelta):
            keys["timeout"] = duration_text(timeout)
            if given.get("retries"):
                keys["retry_on"] = ["exit", "lost", "timeout"]
        pool = given.get("pool")
        if isinstance(pool, str) and pool != "default_pool" and "{{" not in pool:
            name = safe_name(pool)
            keys["pool"] = name
            if name not in self.project.pools:
                self.project.pools[name] = 1
                self.project.note(Level.CHECK, f"pool `{name}` has one slot in ork.yaml: set its real number")
        weight = given.get("priority_weight")
        if isinstance(weight, int) and weight != 1:
            keys["priority"] = weight
        return keys

    def _shared_keys(self, operator: Operator, task: ImportedTask) -> None:
        for key, value in self._task_keys(operator.keywords, task).items():
            task.keys.setdefault(key, value)
        if operator.keywords.get("depends_on_past") is True:
            task.note(Level.CHECK, "`depends_on_past` is not kept: `max_active_runs: 1` keeps runs in order")
        if any(operator.keywords.get(name) is not None for name in _CALLBACKS):
            task.note(Level.INFO, "callbacks are not kept: use `alerts`")
        secrets = self.secrets.get(operator.task_id, set())
        if secrets:
            env = task.keys.setdefault("env", {})
            for name in sorted(secrets):
                env.setdefault(name, {"secret": name})

    def _rule(self, operator: Operator, task: ImportedTask) -> None:
        rule = operator.get("trigger_rule", "all_success")
        rule = rule.lower().rpartition(".")[2] if isinstance(rule, str) else rule
        if rule not in TRIGGER_RULES:
            raise Untranslatable(
                f"its trigger rule `{rule if isinstance(rule, str) else '(computed)'}` has no counterpart"
            )
        run_if = TRIGGER_RULES[rule]
        if run_if is not None:
            task.keys["run_if"] = run_if
            if rule not in _EXACT_RULES:
                task.note(Level.INFO, f"trigger rule `{rule}` became `run_if: {run_if}`")

    def _conditions(self) -> None:
        """Direct downstream tasks of a branch, a short circuit or a task that may skip itself get a `when`."""
        for operator in self.dag.tasks:
            below = [each for each in self.dag.tasks if operator in each.upstream]
            for each in below:
                task = self.workflow.tasks[self.names[each.task_id]]
                name = self.names[operator.task_id]
                kind = _gate(operator)
                if task.keys.get("run_if") == "all_done" or self.workflow.tasks[name].level == Level.PERSON:
                    continue
                if kind == "branch" and not _is_below(each, [other for other in below if other is not each]):
                    _add_condition(task, {"ref": f"tasks.{name}.output.{safe_name(each.task_id)}", "exists": True})
                elif kind == "circuit":
                    _add_condition(task, {"ref": f"tasks.{name}.output", "equals": True})
                elif operator.task_id in self.skipping and kind is None:
                    from ork.importers.copied.from_airflow import SKIPPED

                    _add_condition(task, {"ref": f"tasks.{name}.output", "not_equals": SKIPPED})

    # Values that templates of commands need.

    def value_ref(self, name: str, code: str) -> str:
        """A reference to a value that the helper task computes."""
        for known, existing in self.values.items():
            if existing == code:
                return f"tasks.{HELPER}.output.{known}"
        name = unique_name(identifier(name).strip("_") or "value", set(self.values))
        self.values[name] = code
        return f"tasks.{HELPER}.output.{name}"

    def _add_values(self) -> None:
        if not self.values:
            return
        self.use_module()
        self.module.add_import(f"from {MODULE} import context_of, macros, value_of")
        lines = "".join(f"        {name!r}: value_of({code}),\n" for name, code in self.values.items())
        self.module.wrappers.insert(
            0,
            f'def {HELPER}(ctx):\n    """The values of templates in commands."""\n'
            f"    context = context_of(ctx, **DAG_FACTS, task_id={HELPER!r})\n    return {{\n{lines}    }}\n",
        )
        helper = ImportedTask(HELPER, "values of templates", self.dag.place, is_helper=True)
        helper.keys = {"file": self.module.path, "function": HELPER}
        if self.secrets.get(HELPER):
            helper.keys["env"] = {name: {"secret": name} for name in sorted(self.secrets[HELPER])}
        self.workflow.tasks = {HELPER: helper, **self.workflow.tasks}

    def use_module(self) -> None:
        self.uses_module = True

    def _write_module(self) -> None:
        if self.module.is_empty:
            return
        if any("DAG_FACTS" in text for text in self.module.wrappers):
            facts = {
                "dag_id": self.dag.dag_id,
                "cron": self.schedule.cron,
                "timezone": self.schedule.timezone,
                "is_interval": self.schedule.is_interval,
            }
            self.module.wrappers.insert(0, f"DAG_FACTS = {facts!r}")
        head = f"Functions of the workflow {self.workflow.name}, imported from {self.dag.module.path}."
        self.project.files[self.module.path] = self.module.text(head)

    # Secrets, outputs, macros.

    def variable_secret(self, name: str, task_id: str | None = None) -> str:
        secret = f"AIRFLOW_VAR_{identifier(name).upper()}"
        self.project.secrets[secret] = f"the Airflow variable `{name}`"
        if task_id:
            self.secrets.setdefault(task_id, set()).add(secret)
        return secret

    def connection_secret(self, conn_id: str, task_id: str | None = None) -> str:
        secret = f"AIRFLOW_CONN_{identifier(conn_id).upper()}"
        self.project.secrets[secret] = f"the Airflow connection `{conn_id}` as a URL"
        if task_id:
            self.secrets.setdefault(task_id, set()).add(secret)
        return secret

    def output_path(self, task_id: str, key: str | None, steps: list[str | int]) -> list[str | int]:
        """The path in a task's output of what was pushed under a key."""
        if task_id in self.pushing:
            return [key or "return_value", *steps]
        return [*([key] if key not in (None, "return_value") else []), *steps]

    def macro(self, name: str) -> bool:
        """Whether the name is a macro of the DAG; its function is then copied."""
        macros = self.dag.keywords.get("user_defined_macros")
        value = macros.get(name) if isinstance(macros, dict) else None
        if isinstance(value, SourceFunction) and not isinstance(value.node, ast.Lambda):
            missing = self.module.need_function(value)
            if value.name != name:
                self.module.wrappers.append(f"{name} = {value.name}")
            return not missing
        if is_known(value) and value is not None:
            self.module.wrappers.append(f"{name} = {value!r}")
            return True
        return False

    def scope(self) -> NameScope:
        return self.dag.module.scope  # type: ignore[no-any-return]


def _link(left: Operator, right: Operator, pairs: set[tuple[int, int]]) -> None:
    if (id(left), id(right)) not in pairs:
        pairs.add((id(left), id(right)))
        right.upstream.append(left)


def _ends(node: Any, *, is_last: bool) -> list[Operator]:
    """The task itself; of a group the tasks without others of the group before (or after) them."""
    if isinstance(node, Operator):
        return [node]
    tasks = node.tasks()
    if is_last:
        return [each for each in tasks if not any(each in other.upstream for other in tasks)]
    return [each for each in tasks if not any(other in each.upstream for other in tasks)]


def _is_below(task: Operator, others: list[Operator], seen: set[int] | None = None) -> bool:
    """Whether one of the others is upstream of the task."""
    seen = set() if seen is None else seen
    for each in task.upstream:
        if any(each is other for other in others):
            return True
        if id(each) not in seen:
            seen.add(id(each))
            if _is_below(each, others, seen):
                return True
    return False


def _gate(operator: Operator) -> str | None:
    kind = operator.kind.lower()
    if "branch" in kind:
        return "branch"
    return "circuit" if "shortcircuit" in kind or "short_circuit" in kind or kind == "latestonlyoperator" else None


def _add_condition(task: ImportedTask, condition: dict[str, Any]) -> None:
    existing = task.keys.get("when")
    task.keys["when"] = (
        condition if existing is None else [*(existing if isinstance(existing, list) else [existing]), condition]
    )


def _param(value: Any) -> tuple[Any, str | None]:
    """The default and the description of a param."""
    if isinstance(value, ForeignCall):
        default = value.args[0] if value.args else value.keywords.get("default")
        description = value.keywords.get("description")
        return json_or_none(default), description if isinstance(description, str) else None
    return json_or_none(value), None


def json_or_none(value: Any) -> Any:
    """The value if it can be written as JSON, else None."""
    if isinstance(value, datetime):
        return value.isoformat()
    if not is_known(value) or (isinstance(value, str) and "{{" in value):
        return None
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError):
        return None


def duration_text(value: timedelta) -> str:
    """A duration as Ork writes it: `90s`, `5m`, `2h`."""
    seconds = value.total_seconds()
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{int(seconds // size)}{unit}"
    return f"{seconds:g}s"


def _pulled_in_sources(text: str) -> set[str]:
    """Task ids that some `xcom_pull` of the file names."""
    import re

    found: set[str] = set()
    for match in re.finditer(r"xcom_pull\(([^)]*)\)", text):
        found |= set(re.findall(r"['\"]([\w.-]+)['\"]", match[1]))
    return found
