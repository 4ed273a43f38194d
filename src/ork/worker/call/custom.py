"""A task of a custom executor in its process: creates the class, checks its config, and returns the call to make."""

from __future__ import annotations

import sys

from ork.worker.call.arguments import Arguments, as_they_were
from ork.worker.call.environment import Bindings
from ork.worker.call.loading import LoadError, load_function
from ork.worker.data.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ork.sdk.context import Context

_STOPPED = 143  # as in a shell: 128 + SIGTERM


def prepare_custom(
    spec: dict[str, Any], bindings: Bindings, make_context: Callable[[], Context], *, is_own_process: bool = True
) -> tuple[Callable[..., Any], Arguments]:
    """The executor's `run` and its arguments. InputError if a config is invalid.

    In a process that is shared by attempts there is no stop signal.
    """
    module, _, name = spec["target"].partition(":")
    made_of = load_function(spec["root"], None, module, name)
    executor = made_of(_class_config(made_of, bindings.value(spec["config"]), spec))
    run = getattr(executor, "run", None)
    if not callable(run):
        raise LoadError(f"`{spec['target']}` has no method `run`")
    context = make_context()
    arguments = Arguments()
    arguments.positional = [
        context,
        _task_config(made_of, bindings.value(spec["task_config"])),
        _inputs(spec, bindings),
    ]
    stop = getattr(executor, "stop", None)
    if is_own_process and callable(stop):
        _stop_when_asked(stop, context)
    return run, arguments


def _class_config(made_of: Any, config: Any, spec: dict[str, Any]) -> Any:
    """The config in ork.yaml, converted if `__init__` annotates it; no config counts as an empty map."""
    from ork.worker.convert.values import resolve_annotation

    start = made_of.__init__
    annotations = getattr(start, "__annotations__", {})
    written = next((kind for name, kind in annotations.items() if name != "return"), None)
    if written is None:
        return config
    wanted = resolve_annotation(written, start)
    if config is None and isinstance(wanted, type) and hasattr(wanted, "__dataclass_fields__"):
        config = {}
    return _converted(config, wanted, f"the config of executor `{spec['executor']}` in ork.yaml")


def _task_config(made_of: Any, config: Any) -> Any:
    wanted = getattr(made_of, "TaskConfig", None)
    if wanted is None:
        return config
    given = {} if config is None else config
    if isinstance(given, dict) and isinstance(wanted, type):
        known = _known_keys(wanted)
        unknown = sorted(set(given) - known)
        if unknown:  # even if the type accepts unknown keys: such a setting would have no effect
            raise InputError(f"`config` has no key `{unknown[0]}`; known: {', '.join(sorted(known))}")
        missing = sorted(_required_keys(wanted) - set(given))
        if missing:
            raise InputError(f"`config` needs {', '.join(f'`{name}`' for name in missing)}")
    return _converted(given, wanted, "`config`")


def _known_keys(wanted: Any) -> set[str]:
    fields = getattr(wanted, "model_fields", None)
    if fields is not None:
        return {getattr(field, "alias", None) or name for name, field in fields.items()} | set(fields)
    return {name for kind in getattr(wanted, "__mro__", (wanted,)) for name in getattr(kind, "__annotations__", {})}


def _required_keys(wanted: Any) -> set[str]:
    """The required keys of a dataclass. The errors of other types name missing keys themselves."""
    fields = getattr(wanted, "__dataclass_fields__", {})
    if not fields:
        return set()
    from dataclasses import MISSING

    return {
        name
        for name, field in fields.items()
        if field.init and field.default is MISSING and field.default_factory is MISSING
    }


def _converted(value: Any, wanted: Any, what: str) -> Any:
    if wanted is None:
        return value
    from ork.worker.convert.scalars import ConversionError
    from ork.worker.convert.values import convert

    try:
        return convert(value, wanted)
    except ConversionError as error:
        raise InputError(f"{what}{error}") from None


def _inputs(spec: dict[str, Any], bindings: Bindings) -> dict[str, Any]:
    given = spec["inputs"] if spec["inputs"] is not None else spec["upstream"]
    return {name: as_they_were(bindings.argument(bound)) for name, bound in given.items()}


def _stop_when_asked(stop: Callable[[Context], Any], context: Context) -> None:
    """On the first SIGTERM, call the executor's `stop` and end the process."""
    import _signal  # type: ignore[import-not-found]

    def on_term(_number: int, _frame: object) -> None:
        _signal.signal(_signal.SIGTERM, _signal.SIG_IGN)
        try:
            _finish(stop(context))
        except Exception:
            import traceback

            traceback.print_exc()
        sys.exit(_STOPPED)

    _signal.signal(_signal.SIGTERM, on_term)


def _finish(result: Any) -> None:
    """Run an async `stop` in a new thread with its own loop, because this thread's loop may be running `run`."""
    if not hasattr(result, "__await__"):
        return
    import asyncio
    import threading

    async def wait() -> None:
        await result

    thread = threading.Thread(target=lambda: asyncio.run(wait()))
    thread.start()
    thread.join()
