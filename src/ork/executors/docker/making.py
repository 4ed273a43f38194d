"""Converts an attempt's spec to a container configuration. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import dirname
from typing import Any

from ork.errors import DocumentError
from ork.model.value_reference import FILES_IN_IMAGE
from ork.objects.references import needs_files

LABEL = "ork.attempt"
STORE_LABEL = "ork.store"
WORKER_HOME = "/.ork"
_NANO = 1_000_000_000


def container_name(attempt: str) -> str:
    """A unique name for the attempt: run, task, index and number, separated by dots."""
    return "ork." + attempt.replace("/", ".")


def is_plain(spec: Mapping[str, Any]) -> bool:
    """True for a plain container, in which no worker runs."""
    return bool(spec["kind"] == "container")


def container_config(
    spec: Mapping[str, Any],
    image: str,
    env: Mapping[str, str],
    store: str,
    command: list[str] | None,
    log: Mapping[str, Any],
) -> dict[str, Any]:
    """The configuration. Without `command` the image's own is used. Only image, command and variables come from the
    workflow."""
    wanted = spec["container"]
    config: dict[str, Any] = {
        "Image": image,
        "Env": [f"{name}={value}" for name, value in env.items()],
        "Labels": {LABEL: spec["attempt"], STORE_LABEL: store},
        "AttachStdout": False,
        "AttachStderr": False,
        "StopTimeout": max(1, int(spec["stop_grace_seconds"])),
        "HostConfig": _host_config(wanted, log),
    }
    if command is not None:
        config["Cmd"] = command
    if command is not None and not is_plain(spec):
        # The worker replaces the image's entrypoint.
        config["Entrypoint"], config["Cmd"] = command[:1], command[1:]
    if wanted["user"] is not None:
        config["User"] = wanted["user"]
    if wanted["read_only"]:
        config["Volumes"] = {folder: {} for folder in own_folders(spec)}
    return config


def own_folders(spec: Mapping[str, Any]) -> list[str]:
    """Folders that Ork writes to or reads from. With a read-only root they become volumes."""
    if not is_plain(spec):
        return [WORKER_HOME]
    folders = {dirname(path): path for path in (spec["to_file"], spec["from_file"]) if path}
    if needs_files(spec):
        folders[FILES_IN_IMAGE] = FILES_IN_IMAGE
    if "/" in folders:
        raise DocumentError(f"the root is read-only: {folders['/']} must be in a folder")
    return sorted(folders)


def _host_config(wanted: Mapping[str, Any], log: Mapping[str, Any]) -> dict[str, Any]:
    host: dict[str, Any] = {
        "AutoRemove": False,  # its result must stay available after its end
        "LogConfig": log,
        "ReadonlyRootfs": wanted["read_only"],
        "RestartPolicy": {"Name": "no"},
        "CapDrop": ["ALL"],
    }
    # Specs of older schedulers do not have these entries.
    if wanted.get("capabilities"):
        host["CapAdd"] = wanted["capabilities"]
    if not wanted.get("new_privileges"):
        host["SecurityOpt"] = ["no-new-privileges"]
    if wanted["network"] is not None:
        host["NetworkMode"] = wanted["network"]
    if wanted["cpu"] is not None:
        host["NanoCpus"] = int(wanted["cpu"] * _NANO)
    if wanted["memory"] is not None:
        # With swap the limit would be twice as large.
        host["Memory"] = host["MemorySwap"] = int(wanted["memory"])
    if wanted["pids"] is not None:
        host["PidsLimit"] = wanted["pids"]
    if wanted["volumes"]:
        host["Binds"] = wanted["volumes"]
    return host
