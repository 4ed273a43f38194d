"""Outputs of tasks as JSON text, in parts."""

from __future__ import annotations

from collections.abc import Iterator

from ork.errors import NotFoundError, ObjectsError, RefusedError
from ork.model.ids import TaskKey
from ork.model.task import InlineOutput, StoredOutput, Task, TaskStatus
from ork.objects.attempt_documents import AttemptDocuments
from ork.status.run_view import RunView, is_group
from ork.status.secret_masking import mask_bytes, masked_output


def check_has_output(view: RunView, task: Task) -> None:
    if task.status is not TaskStatus.SUCCESS:
        raise RefusedError(f"`{task.key}` is {task.status}: it has no output", hint=f"ork why {view.short} {task.key}")


def output_parts(objects: AttemptDocuments, view: RunView, task: Task) -> Iterator[bytes]:
    """The output in parts. A fan-out yields one instance's output at a time, so memory stays bounded."""
    if not is_group(task):
        yield output_text(objects, view, task)
        return
    total = task.instances or 0
    width = int(task.item) if task.item else None  # set for a two-dimensional fan-out: the output is a list of lists
    yield b"["
    for index in range(total):
        if width is not None and index % width == 0:
            yield b"["
        yield output_text(objects, view, view.tasks[TaskKey(task.key.name, index)])
        if width is not None and (index + 1) % width == 0:
            yield b"]"
        yield b"," if index + 1 < total else b""
    yield b"]"


def output_text(objects: AttemptDocuments, view: RunView, task: Task) -> bytes:
    """The output with the values of secrets and sensitive params masked."""
    return mask_bytes(masked_output(view.hidden, _output_text(objects, task)))


def _output_text(objects: AttemptDocuments, task: Task) -> bytes:
    match task.output:
        case InlineOutput(text):
            return text.encode()
        case StoredOutput(key):
            (data,) = objects.read_values([key], None)
            if isinstance(data, ObjectsError):
                raise data
            if data is None:
                raise NotFoundError(f"the output of `{task.key}` is no longer in the object store")
            return data
        case None:
            return b"null"
