"""Finishes the attempt of a container that has ended: reads its output and writes the final status."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ork.errors import DocumentError
from ork.executors.docker import endings
from ork.executors.docker.container_documents import ContainerDocuments
from ork.executors.docker.engine import Engine
from ork.executors.docker.files import OutputError, take_object, take_output
from ork.executors.docker.making import is_plain
from ork.executors.docker.retrying import retrying, retrying_call
from ork.executors.docker.values import take_output_file, take_worker_values
from ork.model.value_reference import is_json_file
from ork.objects.portable import output_file, status_file

_STATUS_LIMIT = 2 << 20


async def finish_with(
    engine: Engine,
    documents: ContainerDocuments,
    spec: dict[str, Any],
    ended: Mapping[str, Any],
    decided: Mapping[str, Any] | None,
) -> None:
    """Write the final status. `decided` is set if the container was stopped or timed out, and overrides its exit code."""
    started_at = endings.started_at(ended)
    code = int(ended["State"]["ExitCode"])
    if not is_plain(spec) and await _copy_worker_result(engine, documents, spec, ended["Id"]):
        return
    if decided is not None:
        ending: Mapping[str, Any] = {**decided, "exit_code": code}
    elif code != 0 or not is_plain(spec):
        ending = endings.ended_badly(ended, spec["container"]["memory"], await documents.calls.call(documents.log_tail))
    else:
        ending = await _succeeded(engine, documents, spec, ended["Id"])
    await finish(documents, {**ending, "finished_at": endings.finished_at(ended)}, started_at)


async def finish(documents: ContainerDocuments, ending: Mapping[str, Any], started_at: str | None = None) -> None:
    """Write the final status, unless there is one."""
    began = started_at or datetime.now(UTC).isoformat()

    def write() -> None:
        if not documents.is_over():
            documents.finish(ending, began)

    await retrying_call(documents, write)


async def _succeeded(
    engine: Engine, documents: ContainerDocuments, spec: dict[str, Any], container: str
) -> dict[str, Any]:
    path, limit = spec["from_file"], spec["output_limit"]
    if path is None:
        return endings.success(None)
    try:
        if not is_json_file(path):
            return endings.success(await retrying(lambda: take_output_file(engine, container, documents, spec)))
        data = await retrying(lambda: take_output(engine, container, path, limit))
        # In a thread: a large output would block the event loop.
        stored = await retrying(lambda: asyncio.to_thread(documents.store_output, data, spec))
    except OutputError as error:
        return endings.failed("output", str(error), exit_code=0)
    except DocumentError as error:
        return endings.failed("output", f"{path} cannot be used as output: {error.message}", exit_code=0)
    return endings.success(stored)


async def _copy_worker_result(
    engine: Engine, documents: ContainerDocuments, spec: dict[str, Any], container: str
) -> bool:
    """Copy the worker's final status and output from the container to the object store. False if it left none."""
    attempt = spec["attempt"]
    status = await retrying(lambda: take_object(engine, container, status_file(attempt), _STATUS_LIMIT))
    if status is None:
        return False
    output = await retrying(lambda: take_object(engine, container, output_file(attempt), spec["output_limit"]))
    await retrying(lambda: take_worker_values(engine, container, documents, status, output))
    return await retrying_call(documents, lambda: documents.pass_on(status, output))
