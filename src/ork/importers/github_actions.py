"""Imports workflows of GitHub Actions: a job becomes a task that runs its steps as one script."""

from __future__ import annotations

import itertools
import os
import re
import shlex
from typing import Any

import yaml

from ork.importers.github_expressions import Expression, ExpressionError, expression_of, job_condition, parts_of
from ork.importers.project import ImportedProject, ImportedTask, ImportedWorkflow, Level, SourcePlace, safe_name
from ork.importers.shell import variable_for, with_expansion
from ork.importers.sources import files_below, read_text
from ork.importers.yaml_text import literal

_NOTED_ACTIONS = ("actions/setup-", "actions/cache", "docker/setup-", "astral-sh/setup-uv")
_IGNORED_ACTIONS = ("actions/checkout",)
MAX_INSTANCES = 256

PREAMBLE = """\
set -e
cd "$GITHUB_WORKSPACE"
export GITHUB_ACTIONS=true CI=true
ork_files=$(mktemp -d)
trap 'rm -rf "$ork_files"' EXIT
end_of_step() {  # values that a step wrote to GITHUB_ENV and GITHUB_OUTPUT
  while IFS= read -r line; do export "${line?}"; done < "$GITHUB_ENV"
  while IFS='=' read -r key value; do
    export "steps_${1}_outputs_${key//-/_}=$value"
  done < "$GITHUB_OUTPUT"
}
begin_step() { export GITHUB_ENV="$ork_files/env" GITHUB_OUTPUT="$ork_files/output"; : > "$GITHUB_ENV"; : > "$GITHUB_OUTPUT"; }
"""


class Located(dict[str, Any]):
    """A map with the lines of its keys."""

    line: int = 1
    lines: dict[str, int]


def import_github_actions(path: str) -> ImportedProject:
    """The project of a workflow file, or of all workflow files of a folder."""
    project = ImportedProject(source=path, kind="github-actions")
    for file in files_below(path, (".yml", ".yaml")):
        try:
            document = _located(yaml.compose(read_text(file), Loader=yaml.SafeLoader))
        except (yaml.YAMLError, RecursionError) as error:
            line = getattr(getattr(error, "problem_mark", None), "line", 0) + 1
            project.note(
                Level.PERSON, f"not valid YAML: {getattr(error, 'problem', None) or error}", SourcePlace(file, line)
            )
            continue
        if isinstance(document, Located) and isinstance(document.get("jobs"), Located):
            _Workflow(document, file, project).build()
        else:
            project.note(Level.PERSON, "no workflow of GitHub Actions: it has no `jobs`", SourcePlace(file, 1))
    return project


def _located(node: yaml.Node | None) -> Any:
    if isinstance(node, yaml.MappingNode):
        found = Located()
        found.line, found.lines = node.start_mark.line + 1, {}
        for key, value in node.value:
            name = str(key.value)
            found[name] = _located(value)
            found.lines[name] = key.start_mark.line + 1
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_located(item) for item in node.value]
    if isinstance(node, yaml.ScalarNode):
        if node.style is None and node.value in ("true", "false"):
            return node.value == "true"
        if node.style is None and re.fullmatch(r"-?\d{1,15}", node.value):
            return int(node.value)
        return None if node.style is None and node.value in ("", "null", "~") else str(node.value)
    return None


class _Workflow:
    def __init__(self, document: Located, file: str, project: ImportedProject) -> None:
        self.document = document
        self.file = file
        self.project = project
        stem = os.path.splitext(os.path.basename(file))[0]
        self.workflow = ImportedWorkflow(project.workflow_name(stem), SourcePlace(file, document.line))
        self.jobs: Located = document["jobs"]
        self.names = {job: safe_name(job) for job in self.jobs}
        self.params: dict[str, Any] = {}

    def build(self) -> None:
        project, workflow = self.project, self.workflow
        project.workflows.append(workflow)
        if isinstance(self.document.get("name"), str):
            workflow.keys["description"] = self.document["name"][:200]
        self._triggers()
        if "concurrency" in self.document:
            workflow.keys["max_active_runs"] = 1
        for job, body in self.jobs.items():
            place = SourcePlace(self.file, self.jobs.lines[job])
            task = workflow.add(ImportedTask(self.names[job], "job", place))
            if not isinstance(body, Located):
                task.leave_to_a_person("the job has no keys")
                continue
            try:
                _Job(self, body, task).build()
            except ExpressionError as error:
                task.leave_to_a_person(str(error), SourcePlace(self.file, error.line) if error.line else None)
        if self.params:
            workflow.keys["params"] = self.params

    def _triggers(self) -> None:
        given = self.document.get("on", self.document.get("True"))
        events = (
            {given: None}
            if isinstance(given, str)
            else dict.fromkeys(given)
            if isinstance(given, list)
            else given or {}
        )
        for name, body in events.items():
            place = SourcePlace(self.file, events.lines[name] if isinstance(events, Located) else self.document.line)
            if name == "schedule" and isinstance(body, list):
                self._schedule(body, place)
            elif name in ("workflow_dispatch", "workflow_call"):
                self._inputs(body)
            else:
                self.workflow.note(
                    Level.INFO, f"it also ran on `{name}`: start it with `ork trigger` or a hook of the API", place
                )

    def _schedule(self, entries: list[Any], place: SourcePlace) -> None:
        crons = [each["cron"] for each in entries if isinstance(each, dict) and isinstance(each.get("cron"), str)]
        if crons:
            self.workflow.keys["schedule"] = crons[0]
        for cron in crons[1:]:
            self.workflow.note(Level.PERSON, f"a workflow has one schedule; copy this one for `{cron}`", place)

    def _inputs(self, body: Any) -> None:
        given = body.get("inputs") if isinstance(body, dict) else None
        for name, entry in (given if isinstance(given, dict) else {}).items():
            entry = entry if isinstance(entry, dict) else {}
            param: dict[str, Any] = {"default": entry.get("default")}
            if isinstance(entry.get("description"), str):
                param["description"] = entry["description"]
            self.params[name] = param


class _Job:
    def __init__(self, owner: _Workflow, body: Located, task: ImportedTask) -> None:
        self.owner = owner
        self.body = body
        self.task = task
        self.env: dict[str, Any] = {}
        self.own_variables: set[str] = set()

    def build(self) -> None:
        body, task = self.body, self.task
        needs = body.get("needs") or []
        task.depends_on = [
            self.owner.names[each]
            for each in ([needs] if isinstance(needs, str) else needs)
            if each in self.owner.names
        ]
        if "uses" in body:
            self._reusable()
            return
        if "services" in body:
            raise ExpressionError("its services (databases and the like) must run elsewhere", body.lines["services"])
        self._matrix()
        if "if" in body:
            task.keys |= job_condition(str(body["if"]), self.owner.names, self.owner.params, body.lines["if"])
        self._variables(self.owner.document.get("env"))
        self._variables(body.get("env"))
        script = PREAMBLE + "".join(self._step(step, index) for index, step in enumerate(body.get("steps") or []))
        script += self._outputs()
        self._command(script)
        minutes = body.get("timeout-minutes")
        if isinstance(minutes, int) and minutes > 0:
            task.keys["timeout"] = f"{minutes}m"
        if self.env:
            task.keys["env"] = self.env

    def _command(self, script: str) -> None:
        container = self.body.get("container")
        image = container.get("image") if isinstance(container, dict) else container
        self.task.keys["command"] = ["bash", "-c", literal(script)]
        if isinstance(image, str):
            if "${{" in image:
                raise ExpressionError("its image is an expression", self.body.lines["container"])
            self.task.keys["image"] = image
            self.env["GITHUB_WORKSPACE"] = "/"
            self.task.note(
                Level.CHECK, "the container has no checkout: the image must have the files that its steps need"
            )
            return
        self.env["GITHUB_WORKSPACE"] = self._workspace()

    def _workspace(self) -> str:
        """The folder of the repository, if the file is in `.github/workflows` of one."""
        folder = os.path.dirname(os.path.abspath(self.owner.file))
        if folder.endswith(os.path.join(".github", "workflows")):
            root = os.path.dirname(os.path.dirname(folder))
            self.owner.workflow.note(
                Level.CHECK, f"steps run in {root}: GITHUB_WORKSPACE names the folder with the repository"
            )
            return root
        self.owner.workflow.note(
            Level.CHECK, "steps run in this project: set GITHUB_WORKSPACE to the folder with the repository"
        )
        return "."

    def _variables(self, given: Any) -> None:
        for name, value in (given if isinstance(given, dict) else {}).items():
            line = given.lines.get(name) if isinstance(given, Located) else None
            self.env[name] = self._whole(value, line)
            self.own_variables.add(name)

    def _whole(self, value: Any, line: int | None) -> Any:
        """A value of `env`: text, or one reference."""
        parts = parts_of("" if value is None else str(value).lower() if isinstance(value, bool) else str(value))
        if all(isinstance(part, str) for part in parts):
            return literal("".join(map(str, parts)))
        if len(parts) == 1 and isinstance(parts[0], Expression):
            found = self._value(parts[0], line)
            if isinstance(found, dict):
                return found
        raise ExpressionError(f"`{value}` mixes text and values in `env`: put it together in a step", line)

    def _value(self, expression: Expression, line: int | None) -> Any:
        """A reference or secret for an expression; text for a variable of the script."""
        try:
            found = expression_of(expression, self.owner.names, self.owner.params)
        except ExpressionError as error:
            raise ExpressionError(str(error), line) from error
        if isinstance(found, dict) and "secret" in found:
            self.owner.project.secrets[found["secret"]] = "a secret or variable of the repository"
        return found

    def _matrix(self) -> None:
        strategy = self.body.get("strategy")
        matrix = strategy.get("matrix") if isinstance(strategy, dict) else None
        if matrix is None:
            return
        assert isinstance(strategy, Located)
        line = strategy.lines["matrix"]
        if not isinstance(matrix, dict) or any("${{" in str(value) for value in matrix.values()):
            raise ExpressionError("its matrix is an expression", line)
        axes = {
            name: value
            for name, value in matrix.items()
            if name not in ("include", "exclude") and isinstance(value, list)
        }
        rows = [dict(zip(axes, row, strict=True)) for row in itertools.product(*axes.values())] if axes else []
        excluded = matrix.get("exclude") or []
        rows = [
            row
            for row in rows
            if not any(all(row.get(key) == value for key, value in each.items()) for each in excluded)
        ]
        for extra in matrix.get("include") or []:
            fitting = [
                row for row in rows if all(row.get(key, value) == value for key, value in extra.items() if key in axes)
            ]
            if fitting and any(key in axes for key in extra):
                for row in fitting:
                    row.update(extra)
            else:
                rows.append(dict(extra))
        keys = list(dict.fromkeys(key for row in rows for key in row))
        if not rows or len(rows) > MAX_INSTANCES:
            raise ExpressionError(f"its matrix has {len(rows)} jobs", line)
        self.task.keys["foreach"] = literal([{key: _plain(row.get(key, "")) for key in keys} for row in rows])
        most = strategy.get("max-parallel")
        if isinstance(most, int) and most > 0:
            self.task.keys["concurrency"] = most

    def _step(self, step: Any, index: int) -> str:
        if not isinstance(step, Located):
            raise ExpressionError("a step has no keys")
        title = step.get("name") or step.get("id") or f"step {index + 1}"
        if "uses" in step:
            self._action(str(step["uses"]), step)
            return ""
        if not isinstance(step.get("run"), str):
            raise ExpressionError(f"step `{title}` has no `run`", step.line)
        line = step.lines["run"]
        body = self._script(step["run"], line)
        body = self._in_shell(body, step, line)
        exports = ""
        for name, value in (step.get("env") or {}).items():
            exports += f"export {name}={self._quoted(value, line)}\n"
        folder = step.get("working-directory") or self._default("working-directory")
        if folder:
            exports = f"cd {self._quoted(folder, line)}\n" + exports
        ident = re.sub(r"\W", "_", str(step.get("id") or f"step{index + 1}"))
        may_fail = step.get("continue-on-error") is True
        begin, end = ("set +e\n(\nset -e\n", ")\nset -e\n") if may_fail else ("(\n", ")\n")
        test = self._condition(step)
        comment = str(title).replace("\n", " ")
        text = f"\n# {comment} ({self.owner.file}:{step.line})\nbegin_step\n{begin}{exports}{body.rstrip()}\n{end}end_of_step {ident}\n"
        return f"if {test}; then{text}fi\n" if test else text

    def _condition(self, step: Located) -> str:
        """A test of the shell for `if` of a step."""
        given = str(step.get("if") or "").strip().removeprefix("${{").removesuffix("}}").strip()
        if given in ("", "success()", "always()"):
            if given == "always()":
                raise ExpressionError(
                    f"step `{step.get('name')}` runs after failures too: make it a task with `run_if`", step.lines["if"]
                )
            return ""
        match = re.fullmatch(r"([\w.-]+)\s*(==|!=)\s*'([^']*)'", given)
        if match is None:
            raise ExpressionError(f"the condition `{given}` of a step is not translated", step.lines["if"])
        left = self._script("${{ " + match[1] + " }}", step.lines["if"])
        return f'[ "{left}" {"=" if match[2] == "==" else "!="} {shlex.quote(match[3])} ]'

    def _script(self, text: str, line: int) -> str:
        script = ""
        for part in parts_of(text):
            if isinstance(part, str):
                script += part
                continue
            found = self._value(part, line)
            name = found if isinstance(found, str) else variable_for(part.name, found, self.env)
            script = with_expansion(script, "${" + name + "}")
        return script

    def _quoted(self, value: Any, line: int) -> str:
        text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        if "${{" not in text:
            return shlex.quote(text)
        return '"' + self._script(text.replace('"', '\\"'), line) + '"'

    def _in_shell(self, body: str, step: Located, line: int) -> str:
        shell = step.get("shell") or self._default("shell") or "bash"
        if shell in ("bash", "sh") or str(shell).startswith("bash "):
            return body
        if shell == "python":
            return f"python3 - <<'END_OF_PYTHON'\n{body.rstrip()}\nEND_OF_PYTHON"
        raise ExpressionError(f"its shell is `{shell}`", line)

    def _default(self, name: str) -> Any:
        for owner in (self.body, self.owner.document):
            run = (owner.get("defaults") or {}).get("run") or {}
            if name in run:
                return run[name]
        return None

    def _action(self, name: str, step: Located) -> None:
        place = SourcePlace(self.owner.file, step.lines["uses"])
        if name.startswith(_IGNORED_ACTIONS):
            self.task.note(Level.INFO, f"`{name}`: the steps run in a folder with the repository", place)
        elif name.startswith(_NOTED_ACTIONS):
            self.task.note(
                Level.CHECK, f"`{name}` is not run: the tools must be installed, or use `environment` or `image`", place
            )
        else:
            raise ExpressionError(f"the action `{name}` has no translation", place.line)

    def _outputs(self) -> str:
        given = self.body.get("outputs")
        if not isinstance(given, dict) or not given:
            return ""
        lines = ["\njson() { printf '%s' \"$1\" | sed -e 's/\\\\/\\\\\\\\/g' -e 's/\"/\\\\\"/g'; }\n"]
        pairs = []
        for index, (name, value) in enumerate(given.items()):
            script = self._script(str(value), given.lines[name] if isinstance(given, Located) else 1)
            lines.append(f'value_{index}="{script}"\n')
            pairs.append(f'\\"{name}\\": \\"$(json "$value_{index}")\\"')
        return "".join(lines) + 'echo "{' + ", ".join(pairs) + '}" > "$ORK_OUTPUT_FILE"\n'

    def _reusable(self) -> None:
        target = str(self.body["uses"])
        if not target.startswith("./"):
            raise ExpressionError(f"the workflow `{target}` is in another repository", self.body.lines["uses"])
        self.task.keys["workflow"] = safe_name(os.path.splitext(os.path.basename(target))[0])
        given = self.body.get("with")
        if isinstance(given, dict):
            self.task.keys["inputs"] = {
                name: self._whole(value, self.body.lines["uses"]) for name, value in given.items()
            }


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Located) else value
