"""`ork report`: writes a run as one HTML page."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from ork.cli.arguments import run_argument
from ork.cli.session import json_option, now, print_json, run_short, store_options
from ork.errors import UsageError

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.cli.report.page import Printed
    from ork.model.ids import AttemptKey
    from ork.objects.attempt_documents import AttemptDocuments

LOG_BYTES = 100_000


@click.command(name="report")
@run_argument
@click.option("-o", "--output", "file", metavar="FILE", help="Where to write it; `-` for stdout.  [default: RUN.html]")
@json_option
@store_options
def report_command(run: str, file: str | None, as_json: bool) -> None:
    """Write a run as one self-contained HTML page: graph, timeline, failures, tasks and logs.

    Of long logs it contains the end, of large runs the failed and the longest tasks. It contains params, outputs and
    logs, so check them before you share it.

    \b
    Example:  ork report @last -o report.html
    """
    parts, short = run_short(lambda installation: _page(installation, run))
    text = "".join(parts)
    if file == "-":
        sys.stdout.write(text)
        return
    path = file or f"{short}.html"
    size = _write(path, text)
    if as_json:
        print_json({"path": os.path.abspath(path), "bytes": size})
    else:
        print(f"{path}  {size:,} bytes")


async def _page(installation: Installation, run: str) -> tuple[list[str], str]:
    from ork.cli.report.page import RunReport, page
    from ork.status.facts import with_facts
    from ork.status.ids import parse_target, resolve_run
    from ork.status.run_view import open_view

    store = installation.store
    view, _ = await open_view(store, await resolve_run(store, parse_target(run).run))
    attempts = with_facts(installation.objects, await store.list_attempts(view.run.id))
    cost = await installation.cost(view.run.id, now())
    report = RunReport(view, attempts, now(), lambda key: _end_of_log(installation.objects, key), cost)
    return list(page(report)), view.short


def _end_of_log(objects: AttemptDocuments, attempt: AttemptKey) -> Printed:
    from ork.cli.report.page import Printed

    size = objects.log_size(str(attempt)) or 0
    start = max(size - LOG_BYTES, 0)
    data = objects.read_log(str(attempt), start, LOG_BYTES) if size else b""
    if start:  # from the beginning of a line
        start, data = _from_line(start, data)
    return Printed(data.decode("utf-8", "replace"), start)


def _from_line(start: int, data: bytes) -> tuple[int, bytes]:
    before, found, rest = data.partition(b"\n")
    return (start + len(before) + 1, rest) if found else (start, data)


def _write(path: str, text: str) -> int:
    """Replaces the file atomically."""
    temporary = f"{path}.{os.getpid()}.part"
    data = text.encode("utf-8", "replace")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    return len(data)
