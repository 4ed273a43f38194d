"""Writes the last status of an attempt whose execution has ended, where nothing in it did, in the platform's words."""

from __future__ import annotations

import asyncio
from typing import Any

from ork.errors import DocumentError, EngineError, ObjectsError
from ork.executors.cloud_run.api import CloudRunApi
from ork.executors.cloud_run.executions import ExecutionState, Seen
from ork.executors.cloud_run.logs import read_log
from ork.executors.cloud_run.making import is_plain, plain_file_key
from ork.executors.cloud_run.tracked import Tracked
from ork.executors.docker import endings
from ork.executors.docker.outcome import finish
from ork.executors.docker.retrying import retrying_call
from ork.objects.attempt_documents import AttemptDocuments

EXECUTION = "execution"  # entry of a gate: the execution that won it, by its last name
_KILLED = 137
_LOG_PAUSES = (1.0, 3.0)
_LONG_AGO = "1970-01-01T00:00:00Z"


async def settle(tracked: Tracked, seen: Seen, api: CloudRunApi, objects: AttemptDocuments) -> bool:
    """The attempt's last status is written, or there is nothing to write. False if another execution won its gate, which
    has to be looked at instead."""
    documents, spec = tracked.documents, tracked.spec
    assert spec is not None
    if await retrying_call(documents, documents.is_over):
        return True
    gate = await retrying_call(documents, documents.gate)
    if is_plain(spec):
        if gate is not None and gate.get("state") == "started":
            await _copy_log(tracked, seen, api)
            await finish(documents, await _plain_ending(tracked, seen, api, objects), seen.started_at)
        return True
    if gate is None:
        return await _never_began(tracked, seen)
    if gate.get("state") != "started":
        return True
    winner = gate.get(EXECUTION)
    if winner and winner != seen.name.rpartition("/")[2]:
        tracked.execution = f"{seen.name.rpartition('/executions/')[0]}/executions/{winner}"
        return False
    await finish(documents, worker_ending(seen, await documents.calls.call(documents.log_tail)), seen.started_at)
    return True


async def _never_began(tracked: Tracked, seen: Seen) -> bool:
    """A failure before the worker won the gate: no python3 in the image, for example. The words of the platform are all there is."""
    if seen.state is not ExecutionState.FAILED:
        return True
    facts = {EXECUTION: seen.name.rpartition("/")[2]}
    if await retrying_call(tracked.documents, lambda: tracked.documents.win_gate(facts)):
        failure = endings.failed("start", f"Cloud Run: its worker did not start: {seen.message}")
        await finish(tracked.documents, failure, seen.started_at)
    return True


def worker_ending(seen: Seen, tail: list[str]) -> dict[str, Any]:
    """The end of an execution whose worker had begun and left no result. Pure."""
    if seen.state is ExecutionState.CANCELLED:
        return endings.stopped(f"Cloud Run: {seen.message}")
    if seen.state is ExecutionState.SUCCEEDED:
        # A task that the platform starts again loses the gate and leaves without an error.
        return endings.failed("lost", "Cloud Run ended its worker, and started it again")
    if seen.is_out_of_memory:
        return endings.failed("exit", f"out of memory: {seen.message}", exit_code=_KILLED, tail=tail)
    return endings.failed("lost", f"Cloud Run: {seen.message}", tail=tail)


async def _copy_log(tracked: Tracked, seen: Seen, api: CloudRunApi) -> None:
    """Copy what the program wrote. Lines reach Cloud Logging some seconds late; the attempt does not wait longer for them."""
    documents = tracked.documents
    data, words = b"", ""
    for pause in (0.0, *_LOG_PAUSES):
        await asyncio.sleep(pause)
        try:
            data = await read_log(api, seen.name, seen.started_at or _LONG_AGO)
        except EngineError as error:
            words = f" (not copied: {error.message})"
            break
        if data:
            break

    def write() -> None:
        if data:
            documents.write_log(documents.log_size(), data)
        if seen.log_uri:
            documents.note(f"Cloud Run: the whole log{words}: {seen.log_uri}")

    await retrying_call(documents, write)


async def _plain_ending(tracked: Tracked, seen: Seen, api: CloudRunApi, objects: AttemptDocuments) -> dict[str, Any]:
    spec = tracked.spec
    assert spec is not None
    at = {"finished_at": seen.finished_at} if seen.finished_at else {}
    if seen.state is ExecutionState.CANCELLED:
        return {**endings.stopped(f"Cloud Run: {seen.message}"), **at}
    if seen.is_out_of_memory:
        return {**endings.failed("exit", f"out of memory: {seen.message}", exit_code=_KILLED), **at}
    if seen.state is ExecutionState.FAILED and seen.is_timed_out and spec["timeout"] is not None:
        return {**endings.timed_out(spec["timeout"]), **at}
    if seen.state is ExecutionState.FAILED:
        code = await api.exit_code(seen.name)
        return {**endings.failed("exit", f"Cloud Run: {seen.message}", exit_code=code), **at}
    if spec["kind"] == "cloud_run_job":
        data = f'{{"execution": "{seen.name}"}}'.encode()
        output = await retrying_call(tracked.documents, lambda: tracked.documents.store_output(data, spec))
        return {**endings.success(output), **at}
    return {**await _output_of(tracked, spec, objects), **at}


async def _output_of(tracked: Tracked, spec: dict[str, Any], objects: AttemptDocuments) -> dict[str, Any]:
    path = spec["from_file"]
    if path is None:
        return endings.success(None)

    def read() -> dict[str, Any]:
        (data,) = objects.read_values([plain_file_key(spec, path)], spec["output_limit"])
        if isinstance(data, DocumentError):
            return endings.failed("output", f"{path} cannot be used as output: {data.message}", exit_code=0)
        if isinstance(data, ObjectsError):
            raise data
        if data is None:
            return endings.failed("output", f"it left no output: there is no file {path}", exit_code=0)
        try:
            return endings.success(tracked.documents.store_output(data, spec))
        except DocumentError as error:
            return endings.failed("output", f"{path} cannot be used as output: {error.message}", exit_code=0)

    return await retrying_call(tracked.documents, read)
