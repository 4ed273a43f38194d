"""Masks the values of secrets and of sensitive params in outputs shown to people. Tasks receive outputs unmasked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from ork.model.run import Run
from ork.model.secret import SealError, named_secrets, sealed_names, unseal
from ork.model.task import InlineOutput, Task
from ork.state.reading import StateReader
from ork.state.records import RunUpdate

if TYPE_CHECKING:
    from ork.model.masking import Mask
    from ork.model.workflow import CompiledWorkflow


FOUND_AGAIN_SECONDS = 60.0

_find_values: Callable[[Collection[str]], Iterable[str]] = tuple
_names: set[str] = set()  # secrets used by workflows whose outputs are shown
_found: tuple[float, Mask] | None = None


def set_secret_lookup(find_values: Callable[[Collection[str]], Iterable[str]]) -> None:
    """Sets the function that returns the values of secrets. It is called when the first output is shown."""
    global _find_values, _found
    _find_values, _found = find_values, None


def mask_secrets_of(workflow: CompiledWorkflow) -> None:
    """Adds the workflow's secrets to those that are masked, before outputs of its tasks are shown."""
    global _found
    names = {name for spec in workflow.tasks for name in named_secrets(spec)}
    if not names <= _names:
        _names.update(names)
        _found = None


def mask_text(text: str) -> str:
    """The JSON text of an output with secrets masked."""
    return _mask().text(text) if _names else text


def mask_bytes(data: bytes) -> bytes:
    return _mask().data(data) if _names else data


def mask_value(value: Any) -> Any:
    return _mask().value(value) if _names else value


def _mask() -> Mask:
    global _found
    now = time.monotonic()
    if _found is None or now - _found[0] > FOUND_AGAIN_SECONDS:
        from ork.model.masking import Mask

        _found = now, Mask(_find_values(_names))
    return _found[1]


async def hidden_params(store: StateReader, run: Run) -> Mask | None:
    """A mask for the values of the run's sensitive params; None if it has none.

    A server sends such params without values and masks outputs itself."""
    names = sealed_names(run.params)
    if not names:
        return None
    from ork.model.masking import Mask, strings_in

    key = await store.signing_key()
    return Mask(text for name in names for text in strings_in(_opened(run, name, key))) or None


def mask_params(hidden: Mask | None, update: RunUpdate) -> RunUpdate:
    return update if hidden is None else update._replace(tasks=tuple(_masked(hidden, task) for task in update.tasks))


def masked_output(hidden: Mask | None, data: bytes) -> bytes:
    """The output with values masked. JSON stays valid: a masked number becomes a string."""
    if hidden is None or not hidden.is_in(data):
        return data
    try:
        value = json.loads(data)
    except ValueError:  # damaged
        return hidden.data(data)
    shown = json.dumps(_value(hidden, value), separators=(",", ":"), ensure_ascii=data.isascii())
    return shown.encode("utf-8", "surrogatepass")


def hidden_value(hidden: Mask | None, value: Any) -> Any:
    """A JSON value with the values of sensitive params masked."""
    return value if hidden is None else _value(hidden, value)


def _opened(run: Run, name: str, key: bytes) -> Any:
    """The param's value; None if another installation encrypted it, since no task here received it."""
    try:
        return unseal(key, run.workflow, name, run.params[name])
    except SealError:
        return None


def _masked(hidden: Mask, task: Task) -> Task:
    if isinstance(task.output, InlineOutput):
        task = Task.replaced(task, output=InlineOutput(_text(hidden, task.output.json)))
    if task.key.index is not None and task.item is not None:
        task = Task.replaced(task, item=_text(hidden, task.item))
    return task


def _text(hidden: Mask, text: str) -> str:
    return masked_output(hidden, text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def _value(hidden: Mask, value: Any) -> Any:
    if isinstance(value, dict):
        return {hidden.text(name): _value(hidden, member) for name, member in value.items()}
    if isinstance(value, list):
        return [_value(hidden, item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    text = str(value)
    masked = hidden.text(text)
    return value if masked == text else masked
