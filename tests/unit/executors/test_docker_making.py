"""What the engine is asked to make, from what a spec says."""

from __future__ import annotations

from typing import Any

import pytest

from ork.errors import DocumentError
from ork.executors.docker.making import container_config, container_name, own_folders

CONTAINER = {
    "image": "box", "worker": "default", "host": None, "certificates": None, "network": None, "user": None,
    "read_only": False, "pull": "missing", "cpu": None, "memory": None, "pids": None, "volumes": [],
}  # fmt: skip


def spec(*, kind: str = "container", to_file: str | None = None, from_file: str | None = None, **wanted: Any) -> Any:
    files = {"to_file": to_file, "from_file": from_file}
    bindings: dict[str, Any] = {"inputs": None, "upstream": {}, "env": {}}
    known = {"attempt": "r/t/0/1", "kind": kind, "stop_grace_seconds": 10, **files, **bindings}
    return {**known, "container": {**CONTAINER, **wanted}}


def made(wanted: Any, command: list[str] | None = None) -> dict[str, Any]:
    return container_config(wanted, "sha256:1", {"A": "b"}, "file:/o", command, {})


def test_the_images_own_program_runs_unless_there_is_a_command() -> None:
    assert "Cmd" not in made(spec())
    assert made(spec(), ["a", "b"])["Cmd"] == ["a", "b"]
    assert "Entrypoint" not in made(spec(), ["a"])
    worker = made(spec(kind="python"), ["python3", "x.py"])
    assert (worker["Entrypoint"], worker["Cmd"]) == (["python3"], ["x.py"])


def test_what_a_config_does_not_say_is_left_to_the_engine() -> None:
    config = made(spec())
    assert sorted(config["HostConfig"]) == [
        "AutoRemove",
        "CapDrop",
        "LogConfig",
        "ReadonlyRootfs",
        "RestartPolicy",
        "SecurityOpt",
    ]
    assert "User" not in config


def test_only_the_config_gives_privileges_back() -> None:
    host = made(spec())["HostConfig"]
    assert (host["CapDrop"], host["SecurityOpt"]) == (["ALL"], ["no-new-privileges"])
    host = made(spec(capabilities=["CHOWN"], new_privileges=True))["HostConfig"]
    assert (host["CapDrop"], host["CapAdd"], "SecurityOpt" in host) == (["ALL"], ["CHOWN"], False)


def test_memory_is_never_stretched_by_swap() -> None:
    host = made(spec(memory=64 << 20, cpu=0.25))["HostConfig"]
    assert (host["Memory"], host["MemorySwap"], host["NanoCpus"]) == (64 << 20, 64 << 20, 250_000_000)


def test_with_a_read_only_root_the_folders_of_files_are_volumes() -> None:
    wanted = spec(read_only=True, to_file="/in/a.json", from_file="/out/b.json")
    assert made(wanted)["Volumes"] == {"/in": {}, "/out": {}}
    assert own_folders(spec(kind="python", read_only=True)) == ["/.ork"]
    with pytest.raises(DocumentError, match=r"/a\.json must be in a folder"):
        made(spec(read_only=True, to_file="/a.json"))


def test_names_of_attempts_never_meet() -> None:
    attempts = ["r/a/0/1", "r/a/0/11", "r/a.0/0/1", "r/a/1/1", "r/a.0/1/1", "s/a/0/1"]
    assert len({container_name(attempt) for attempt in attempts}) == len(attempts)
