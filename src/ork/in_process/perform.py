"""Performs one attempt in this process: binding, conversion and checks of the worker, without its process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from ork.core.bind import BindError, Scope
from ork.core.machine import RunMachine
from ork.errors import DocumentError, SecretError
from ork.in_process.jobs import JobFailedError, wait_for
from ork.model.ids import AttemptKey, TaskKey
from ork.model.task import Failure, FailureKind, InlineOutput
from ork.model.trees import bind_tree, pointers
from ork.model.workflow import Command, Custom, PythonCall, Secret, SubWorkflow, TaskSpec
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.json_text import dumps, strict_json
from ork.sdk.context import Context
from ork.sdk.defer import Deferred
from ork.sdk.errors import TaskError
from ork.sdk.workflow import Workflow
from ork.worker.call.arguments import Arguments, as_they_were, bind_arguments
from ork.worker.call.custom import prepare_custom
from ork.worker.call.environment import Bindings, task_environment, task_id
from ork.worker.call.failure import describe
from ork.worker.call.invoke import call
from ork.worker.call.loading import LoadError, load_function
from ork.worker.call.results import LateValues, result_text
from ork.worker.data.errors import InputError, ResultError
from ork.worker.data.returned import with_files
from ork.worker.supervise.command import input_text
from ork.worker.supervise.left_files import LeftFileError, store_left_file
from ork.worker.supervise.programs import ProgramError, find_program

OUTPUT_LIMIT = 256 * 1024 * 1024


class AttemptOutcome(NamedTuple):
    """How an attempt ended: with an output, or with a failure and its exception."""

    output: InlineOutput | None = None
    failure: Failure | None = None
    error: BaseException | None = None


class RunSubWorkflow(Protocol):
    """Runs another workflow with these params and returns the output of its last tasks; raises if it failed."""

    def __call__(self, workflow: Workflow, params: dict[str, Any]) -> Any: ...


class Performer:
    def __init__(
        self,
        workflow: Workflow,
        machine: RunMachine,
        root: str,
        secrets: Any,
        run_child: RunSubWorkflow,
        values: AttemptDocuments,
    ) -> None:
        self._workflow = workflow
        self._machine = machine
        self._root = root
        self._secrets = secrets
        self._run_child = run_child
        self._values = values  # where values that are not JSON are kept

    def perform(self, key: AttemptKey) -> AttemptOutcome:
        """Never raises because of the task, except for KeyboardInterrupt."""
        try:
            spec = self._machine.spec(key.task)
            document, secrets = self._document(key, spec), self._found_secrets(spec)
            bindings = Bindings(self._values, OUTPUT_LIMIT, secrets, document)
            text = self._output_text(spec, document, bindings)
            return AttemptOutcome(InlineOutput(text) if text is not None else None)
        except (BindError, InputError, SecretError) as error:
            return _failed(FailureKind.INPUT, error)
        except ResultError as error:
            return _failed(FailureKind.OUTPUT, error)
        except (ProgramError, LoadError) as error:
            return _failed(FailureKind.START, error)
        except _ExitError as error:
            return _failed(FailureKind.EXIT, error)
        except JobFailedError as error:
            return AttemptOutcome(failure=error.failure, error=TaskError(str(error)))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            described = describe(error, self._root, {})
            return AttemptOutcome(
                failure=Failure(FailureKind.EXCEPTION, described["message"], described["detail"]), error=error
            )

    def _output_text(self, spec: TaskSpec, document: dict[str, Any], bindings: Bindings) -> str | None:
        entry = self._workflow.tasks[spec.name]
        match spec.action:
            case PythonCall(file, module, named):
                function = entry.function or load_function(self._root, file, module, named)
                arguments = bind_arguments(function, document, bindings, lambda: _context(document))
                return self._called(document, bindings, function, arguments)
            case Command():
                return _run_command(document, bindings, self._values)
            case SubWorkflow(name):
                if entry.child is None:
                    raise TaskError(f"workflow {name} is only named here: give the Workflow itself", retry=False)
                params = {key: bindings.value(bound) for key, bound in (document["inputs"] or {}).items()}
                child = self._run_child(entry.child, params)
                return result_text(child, OUTPUT_LIMIT, LateValues(self._values, document))
            case Custom():
                run, arguments = prepare_custom(document, bindings, lambda: _context(document), is_own_process=False)
                return self._called(document, bindings, run, arguments)
            case _:
                raise TaskError(f"a task of the executor {spec.executor} cannot run in process", retry=False)

    def _called(
        self, document: dict[str, Any], bindings: Bindings, function: Callable[..., Any], arguments: Arguments
    ) -> str | None:
        with _variables({name: _text(bindings.value(bound)) for name, bound in document["env"].items()}):
            result = call(function, arguments.positional, arguments.named)
            if isinstance(result, Deferred):
                return wait_for(result, self._root, self._secrets, OUTPUT_LIMIT)
        returns = getattr(function, "__annotations__", {}).get("return")
        if returns is not None and "File" in str(returns):
            result = with_files(result, returns, function)
        return result_text(result, OUTPUT_LIMIT, LateValues(self._values, document))

    def outcome_value(self, bound: dict[str, Any]) -> Any:
        """The value that an output stands for; values that are not JSON as what they were."""
        spec = {"attempt": f"{self._machine.run.id}/result/0/1", "codecs": self._codecs()}
        return as_they_were(Bindings(self._values, OUTPUT_LIMIT, {}, spec).argument(bound))

    def _codecs(self) -> dict[str, str]:
        return dict(self._machine.workflow.codecs)

    def _document(self, key: AttemptKey, spec: TaskSpec) -> dict[str, Any]:
        """The part of a worker's spec that is needed here."""
        machine, run = self._machine, self._machine.run
        scope, place = machine.scope(key.task), machine.position(key.task)
        argv = spec.action.argv if isinstance(spec.action, Command) else ()
        return {
            "attempt": str(key),
            "run_id": run.id,
            "workflow": run.workflow,
            "task": key.task.name,
            "index": key.task.index,
            "parallel_index": place.index,
            "parallel_count": place.count,
            "number": key.number,
            "scheduled_for": None,
            "root": self._root,
            "script_dir": None,
            "function": spec.name,
            "argv": [bound if "as_file" in (bound := scope.bind(word)) else _word(bound) for word in argv],
            "from_file": spec.action.from_file if isinstance(spec.action, Command) else None,
            "output_limit": OUTPUT_LIMIT,
            "inputs": {name: scope.bind(value) for name, value in spec.inputs} or None,
            "item": scope.item(),
            "upstream": {name: scope.upstream(name) for name in spec.depends_on},
            "upstream_states": {name: str(machine.tasks[TaskKey(name)].status) for name in spec.depends_on},
            "params": run.params,
            "env": {name: scope.bind(value) for name, value in spec.env},
            "codecs": self._codecs(),
            **_custom(spec, scope),
        }

    def _found_secrets(self, spec: TaskSpec) -> dict[str, str]:
        found = {}
        for value in _values_of(spec):
            if isinstance(value, Secret):
                found[value.name] = self._secrets(value.name)
        return found


def _custom(spec: TaskSpec, scope: Scope) -> dict[str, Any]:
    if not isinstance(spec.action, Custom):
        return {}
    config, task = (bind_tree(tree, scope.bind) for tree in (spec.action.config, spec.action.task))
    return {"executor": spec.executor, "target": spec.action.target, "config": config, "task_config": task}


def _values_of(spec: TaskSpec) -> list[Any]:
    values: list[Any] = [value for _, value in (*spec.inputs, *spec.env)]
    if isinstance(spec.action, Custom):
        values += [value for tree in (spec.action.config, spec.action.task) for value, _ in pointers(tree)]
    return values


class _ExitError(Exception):
    """A program exited with a non-zero code."""


def _run_command(document: dict[str, Any], bindings: Bindings, values: AttemptDocuments) -> str | None:
    with tempfile.TemporaryDirectory() as scratch:
        bindings.folder = f"{scratch}/inputs"
        env = task_environment(document, os.environ, bindings)
        env["ORK_OUTPUT_DIR"] = scratch
        env["ORK_INPUT_FILE"], env["ORK_OUTPUT_FILE"] = f"{scratch}/input.json", f"{scratch}/output.json"
        with open(env["ORK_INPUT_FILE"], "wb") as file:
            file.write(input_text(document, bindings))
        words = bindings.words(document["argv"])
        argv = find_program(words, document["root"], None, env.get("PATH", os.defpath))
        with open(env["ORK_INPUT_FILE"], "rb") as stdin:
            done = subprocess.run(argv, stdin=stdin, stdout=subprocess.PIPE, env=env, cwd=document["root"], check=False)
        # Through sys.stdout: notebooks and pytest capture that.
        sys.stdout.write(done.stdout.decode("utf-8", "replace"))
        if done.returncode:
            raise _ExitError(f"exit code {done.returncode}")
        if document["from_file"] is not None:
            return _left_file(document, f"{scratch}/{document['from_file']}", values)
        if os.path.exists(env["ORK_OUTPUT_FILE"]):
            return _written_output(env["ORK_OUTPUT_FILE"])
    lines = done.stdout.strip().splitlines()
    try:
        return dumps(strict_json(lines[-1], max_size=OUTPUT_LIMIT)) if lines else None
    except DocumentError:
        return None


def _left_file(document: dict[str, Any], path: str, values: AttemptDocuments) -> str:
    try:
        return store_left_file(values, document, path)
    except LeftFileError as error:
        raise ResultError(str(error)) from None


def _written_output(path: str) -> str:
    with open(path, "rb") as file:
        try:
            return dumps(strict_json(file.read(), max_size=OUTPUT_LIMIT))
        except DocumentError as error:
            message = f"the content of $ORK_OUTPUT_FILE is invalid: {error}"
            raise ResultError(message) from None


@contextmanager
def _variables(added: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in added}
    os.environ.update(added)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _context(document: dict[str, Any]) -> Context:
    return Context(
        task_id=task_id(document),
        run_id=document["run_id"],
        task_name=document["task"],
        workflow_name=document["workflow"],
        attempt=document["number"],
        parallel_index=document["parallel_index"],
        parallel_count=document["parallel_count"],
    )


def _failed(kind: FailureKind, error: Exception) -> AttemptOutcome:
    return AttemptOutcome(failure=Failure(kind, str(error)), error=TaskError(str(error)))


def _word(bound: dict[str, Any]) -> str:
    return _text(bound.get("value"))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)
