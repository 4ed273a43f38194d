"""Masks the values of sensitive params in outputs shown to people. Tasks receive outputs unmasked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ork.model.run import Run
from ork.model.sealed import SealError, sealed_names, unseal
from ork.model.task import InlineOutput, Task
from ork.state.reading import StateReader
from ork.state.records import RunUpdate

if TYPE_CHECKING:
    from ork.model.masking import Mask


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
