"""`ork workers`: lists the worker configs in workers.yaml, and checks their container engines and permissions on platforms."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from ork.cli.errors import DONE, WRONG_USE
from ork.cli.session import current_settings, json_option, palette, print_json, store_options, warn_about_workers
from ork.errors import OrkError
from ork.model.infra import Where

if TYPE_CHECKING:
    from ork.cli.paint import Line, Span
    from ork.settings import Settings

ANSWER_SECONDS = 5.0


@click.command(name="workers")
@json_option
@store_options
def workers_command(as_json: bool) -> int:
    """List the worker configs in workers.yaml: where tasks run, their limits, whether container engines respond, and which
    permissions on Cloud Run and Kubernetes are missing. Nothing is started.

    Errors in the file are shown too, with exit code 2.

    \b
    Example:  ork workers
    """
    settings = current_settings()
    has_errors = settings.project is not None and bool(settings.project.worker_problems)
    rows = _workers_of_server(settings) if settings.server is not None else asyncio.run(check_workers(settings))
    if as_json:
        print_json({"workers": rows, "notes": _notes(settings)})
    elif rows:
        palette(sys.stdout).write(sys.stdout, _table(rows))
        for note in _notes(settings):
            print(f"note: {note}", file=sys.stderr)
    elif not has_errors:
        print("no worker configs: add them to workers.yaml, next to ork.yaml", file=sys.stderr)
    warn_about_workers(settings)
    return WRONG_USE if has_errors and settings.server is None else DONE


def _notes(settings: Settings) -> list[str]:
    """How limits of local tasks are enforced if control groups are not available."""
    limited = [config.resources for config in settings.workers.values() if config.where in (None, Where.LOCAL)]
    has_memory, has_cpu = any(each.memory for each in limited), any(each.cpu for each in limited)
    if settings.server is not None or not (has_memory or has_cpu):
        return []
    from ork.worker.supervise.limits import enforcement

    how, notes = enforcement(), []
    if how["memory"] == "nothing":
        return ["memory and cpu of local tasks are not limited on this system: see docs/portable.md"]
    if has_memory and how["memory"] != "cgroup":
        notes.append(
            "memory of local tasks: control groups are not available, so each process gets an address-space limit"
        )
    if has_cpu and how["cpu"] != "cgroup":
        notes.append("cpu of local tasks: control groups are not available, so tasks are bound to that many processors")
    return notes


def _workers_of_server(settings: Settings) -> list[dict[str, Any]]:
    """The server's worker configs. Engines are not checked: only the server's schedulers can reach them."""
    from ork.api.client.connection import Server

    server = Server(str(settings.server), settings.token, settings.home)
    rows: list[dict[str, Any]] = []
    cursor = None
    while True:
        page = server.get("workers", cursor=cursor)
        rows += [{**row, "engine": None} for row in page["workers"]]
        cursor = page["cursor"]
        if cursor is None:
            return rows


async def check_workers(settings: Settings) -> list[dict[str, Any]]:
    """The configs in workers.yaml, each with the response of its container engine."""
    from ork.status.workers import workers_json

    rows = workers_json(settings.workers)
    engines = await asyncio.gather(*(_platform(row, settings) for row in rows))
    return [{**row, "engine": engine} for row, engine in zip(rows, engines, strict=True)]


async def _platform(row: dict[str, Any], settings: Settings) -> dict[str, Any] | None:
    """The response of the container engine, Cloud Run or Kubernetes; None if the config needs neither. Starts nothing."""
    default = settings.project.default_where if settings.project is not None else None
    where, config = row["where"] or default, settings.workers[row["name"]]
    if where == Where.KUBERNETES:
        from ork.app import kubernetes

        return await kubernetes.check_permissions(config, settings)
    if where == Where.CLOUDRUN:
        from ork.app import cloud_run

        return await cloud_run.check_permissions(config, settings)
    return await _engine(row, settings)


async def _engine(row: dict[str, Any], settings: Settings) -> dict[str, Any] | None:
    """The response of the config's container engine, or the error; None if it needs no engine."""
    if row["where"] not in ("docker", None) or (row["where"] is None and row["host"] is None):
        return None
    from ork.executors.docker.address import engine_address
    from ork.executors.docker.engine import Engine

    config = settings.workers[row["name"]]
    try:
        certificates = config.certificates or settings.docker_certificates
        address = engine_address(config.host or settings.docker_host, certificates)
        async with asyncio.timeout(ANSWER_SECONDS):
            version = await Engine(address).ping()
        return {"address": str(address), "ok": True, "message": f"API {version}"}
    except OrkError as error:
        return {"address": config.host or settings.docker_host, "ok": False, "message": error.message}
    except TimeoutError:
        return {"address": str(address), "ok": False, "message": f"no answer within {ANSWER_SECONDS:g} s"}


def _table(rows: list[dict[str, Any]]) -> list[Line]:
    from ork.cli.tables import table

    titles = ("worker", "where", "cpu", "memory", "timeout", "user", "network", "engine")
    return table(titles, [_cells(row) for row in rows], less=(6, 5, 4))


def _cells(row: dict[str, Any]) -> tuple[Span | str, ...]:
    from ork.cli.paint import Span, visible
    from ork.definition.quantities import memory_text

    engine = row["engine"]
    says: Span | str = "–"
    if engine is not None:
        mark, style = ("✓", "good") if engine["ok"] else ("✗", "bad")
        says = Span(f"{mark} {visible(engine['message'])}", style)
    return (
        row["name"],
        row["where"] or "by task",
        "–" if row["cpu"] is None else f"{row['cpu']:g}",
        "–" if row["memory"] is None else memory_text(row["memory"]),
        "–" if row["timeout"] is None else f"{row['timeout']:g}s",
        visible(row["user"] or "–"),
        visible(row["network"] or "–"),
        says,
    )
