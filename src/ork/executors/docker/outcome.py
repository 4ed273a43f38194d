"""What comes of a container that has ended: its output taken out, and the attempt's last word said."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ork.errors import DocumentError
from ork.executors.docker import endings
from ork.executors.docker.engine import Engine
from ork.executors.docker.files import OutputError, take_object, take_output
from ork.executors.docker.making import is_plain
from ork.executors.docker.papers import Papers
from ork.executors.docker.patience import patiently, said
from ork.objects.portable import output_file, status_file

_STATUS_LIMIT = 2 << 20


async def finish_with(
    engine: Engine, papers: Papers, spec: dict[str, Any], ended: Mapping[str, Any], decided: Mapping[str, Any] | None
) -> None:
    """`decided`: the ending that we brought about, a stop or the end of its time, whatever its exit code."""
    started_at = endings.started_at(ended)
    code = int(ended["State"]["ExitCode"])
    if not is_plain(spec) and await _is_passed_on(engine, papers, spec, ended["Id"]):
        return
    if decided is not None:
        ending: Mapping[str, Any] = {**decided, "exit_code": code}
    elif code != 0 or not is_plain(spec):
        ending = endings.ended_badly(ended, spec["container"]["memory"], await papers.calls.call(papers.log_tail))
    else:
        ending = await _succeeded(engine, papers, spec, ended["Id"])
    await finish(papers, {**ending, "finished_at": endings.finished_at(ended)}, started_at)


async def finish(papers: Papers, ending: Mapping[str, Any], started_at: str | None = None) -> None:
    """The last word, unless it has been said."""
    began = started_at or datetime.now(UTC).isoformat()

    def say() -> None:
        if not papers.is_over():
            papers.finish(ending, began)

    await said(papers, say)


async def _succeeded(engine: Engine, papers: Papers, spec: dict[str, Any], container: str) -> dict[str, Any]:
    path, limit = spec["from_file"], spec["output_limit"]
    if path is None:
        return endings.success(None)
    try:
        data = await patiently(lambda: take_output(engine, container, path, limit))
        # Reading a large one takes a while, and others wait for this loop.
        stored = await patiently(lambda: asyncio.to_thread(papers.store_output, data, spec))
    except OutputError as error:
        return endings.failed("output", str(error), exit_code=0)
    except DocumentError as error:
        return endings.failed("output", f"{path} cannot be used as output: {error.message}", exit_code=0)
    return endings.success(stored)


async def _is_passed_on(engine: Engine, papers: Papers, spec: dict[str, Any], container: str) -> bool:
    """Whether the worker inside has said its last word, and it stands in our store now."""
    attempt = spec["attempt"]
    told = await patiently(lambda: take_object(engine, container, status_file(attempt), _STATUS_LIMIT))
    if told is None:
        return False
    output = await patiently(lambda: take_object(engine, container, output_file(attempt), spec["output_limit"]))
    return await said(papers, lambda: papers.pass_on(told, output))
