"""`ork debug`: runs one attempt again in this terminal, under a debugger."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ork.cli.arguments import run_argument, task_argument
from ork.cli.session import local_settings, run_short, store_options
from ork.errors import NotFoundError, RefusedError, UsageError
from ork.settings import Settings

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.model.ids import TaskKey
    from ork.model.task import Attempt
    from ork.status.run_view import RunView


@click.command(name="debug")
@run_argument
@task_argument
@click.option("--attempt", "number", type=click.IntRange(min=1), help="An earlier attempt (default: the last one).")
@click.option("--trace", is_flag=True, help="Also stop at the function's first line.")
@store_options
def debug_command(run: str, task: str | None, number: int | None, trace: bool) -> None:
    """Run an attempt again in this terminal with the same inputs and working folder, and stop where it fails.

    If a Python function raises, pdb starts there. Nothing is recorded: the run stays as it is. The task's own changes
    to files and services happen again.

    \b
    Example:  ork debug @last transform
              ork debug 7f3k load[417] --attempt 1 --trace
    """
    settings = local_settings("debug")
    found = run_short(lambda installation: _find(installation, run, task, number))
    python = _interpreter(found)
    arguments = [
        _bootstrap(),
        "ork.worker.debug",
        found.objects_url,
        str(found.attempt.key),
        "trace" if trace else "fail",
    ]
    from ork.executors.local_worker import inherited

    environment = {
        **inherited(settings.environ, settings.pass_env),
        "ORK_TOKEN": found.token,
        **_secrets(found.spec, settings),
        **found.params,
    }
    sys.stdout.flush()
    # The task replaces this process: it owns the terminal, and its exit code is the command's.
    os.execve(python, [python, "-S", "-E", *arguments], environment)


class _Found(NamedTuple):
    attempt: Attempt
    spec: Mapping[str, Any]
    token: str
    objects_url: str
    params: dict[str, str]  # sensitive params, as environment variables


async def _find(installation: Installation, run: str, task: str | None, number: int | None) -> _Found:
    from ork.objects.documents import SPEC_LIMIT, derive_token, open_signed
    from ork.scheduler.sensitive import all_opened
    from ork.status.ids import parse_target, resolve_run
    from ork.status.run_view import open_view

    store, objects = installation.store, installation.objects
    target = parse_target(run, task)
    view, _ = await open_view(store, await resolve_run(store, target.run))
    key = _task_of(view, target.task, target.instance)
    attempt = _chosen(await store.list_attempts(view.run.id, key), number, view, key)
    data = objects.read_spec(str(attempt.key))
    if data is None:
        raise NotFoundError(f"the spec of attempt {attempt.key.number} of `{key}` is no longer in the object store")
    spec = open_signed(data, attempt.token_hash, limit=SPEC_LIMIT)
    if spec["kind"] == "workflow":
        raise RefusedError(f"`{key}` runs another workflow", hint="debug a task of that run: `ork runs`")
    if (container := spec.get("container")) is not None:
        hint = f"to inspect the image: docker run --rm -it --entrypoint sh {container['image']}"
        raise RefusedError(f"`{key}` ran in a container image and cannot run outside of it", hint=hint)
    signing_key = await store.signing_key()
    token = derive_token(signing_key, str(attempt.key))
    return _Found(attempt, spec, token, objects.url, all_opened(view.run, signing_key))


def _task_of(view: RunView, task: str | None, instance: int | None) -> TaskKey:
    """The named task; without a name, or for a fan-out without an index, the first one that failed."""
    from ork.model.task import TaskStatus
    from ork.status.ids import RunTarget, pick_tasks
    from ork.status.run_view import is_group

    failed = view.by_status[TaskStatus.FAILED]
    keys = [key for key in pick_tasks(view.tasks, RunTarget("", task, instance)) if not is_group(view.tasks[key])]
    chosen = next((key for key in keys if key in failed), None)
    if chosen is None and len(keys) != 1:
        which = f"`{task}` has {len(keys)} instances" if task else "no task of this run failed"
        raise UsageError(f"{which}: name a task", hint=f"ork debug {view.short} TASK")
    return chosen or keys[0]


def _chosen(attempts: tuple[Attempt, ...], number: int | None, view: RunView, key: TaskKey) -> Attempt:
    if not attempts:
        raise NotFoundError(f"`{key}` has never started", hint=f"ork why {view.short} {key}")
    chosen = next((each for each in attempts if each.key.number == number), None) if number else attempts[-1]
    if chosen is None:
        raise NotFoundError(f"`{key}` has no attempt {number}", hint=f"its last one is {attempts[-1].key.number}")
    if not chosen.status.is_final:
        # A second process of the same attempt would be mistaken for the first.
        raise RefusedError(f"`{key}` is still running", hint=f"ork logs {view.short} {key} -f")
    return chosen


def _interpreter(found: _Found) -> str:
    from ork.executors.executor import LaunchOrder
    from ork.executors.local_worker import InterpreterError, interpreter_for

    spec = found.spec
    paths = tuple(spec.get("paths") or ())
    order = LaunchOrder(found.attempt, found.token, spec["root"], paths=paths)
    try:
        return interpreter_for(order, spec["kind"] in ("python", "custom"))
    except InterpreterError as error:
        raise RefusedError(str(error)) from None


def _bootstrap() -> str:
    import ork

    return os.path.join(os.path.dirname(os.path.abspath(ork.__file__)), "worker", "bootstrap.py")


def _secrets(spec: Mapping[str, Any], settings: Settings) -> dict[str, str]:
    """The task's secrets as environment variables. They are read again, because specs do not contain values."""
    from ork.scheduler.spec_secrets import SECRET_PREFIX

    values = {}
    bound = [spec.get(part) for part in ("inputs", "env", "config", "task_config")]
    for variable in set(_secret_variables(bound)):
        if not variable.startswith(SECRET_PREFIX):
            continue
        name = variable.removeprefix(SECRET_PREFIX)
        values[variable] = settings.secrets.value(name, spec["workflow"], waits=True)
    return values


def _secret_variables(bound: Any) -> Iterator[str]:
    """The names of the environment variables that bound values take secrets from, also in nested values."""
    if isinstance(bound, dict):
        if isinstance(bound.get("secret"), str):
            yield bound["secret"]
        elif "value" not in bound:
            yield from _secret_variables(list(bound.values()))
    elif isinstance(bound, list):
        for each in bound:
            yield from _secret_variables(each)
