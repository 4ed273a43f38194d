"""Attempts in containers, on a real engine: what goes in, what comes out, and what is told of their ends."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ork.model.infra import Where, WorkerConfig
from ork.model.record import replaced
from ork.model.workflow import Container, TaskSpec
from ork.scheduler.specs import container_document
from tests.docker import Daemon, busybox, daemon_or_skip, only_a_program, own_registry
from tests.integration.dock import Dock, play

pytestmark = pytest.mark.slow


@pytest.fixture
def daemon() -> Daemon:
    daemon = daemon_or_skip()
    busybox(daemon)
    return daemon


def failure(status: dict[str, Any]) -> str:
    return str(status["failure"]["message"])


def test_input_goes_in_and_output_comes_out_through_files_whose_folders_are_made(
    daemon: Daemon, tmp_path: Path
) -> None:
    async def scene(dock: Dock) -> None:
        order = dock.shell(
            dock.attempt(), "cp /in/deep/a.json /out/far/b.json", inputs={"x": {"value": [1, "é"]}},
            to_file="/in/deep/a.json", from_file="/out/far/b.json",
        )  # fmt: skip
        status = await dock.end_of(order)
        assert status["state"] == "success", status
        assert json.loads(status["output"]["inline"]) == {"x": [1, "é"]}

    play(tmp_path, daemon, scene)


@pytest.mark.parametrize("limits", [{"user": "4711"}, {"read_only": True}], ids=str)
def test_an_image_with_nothing_but_a_program_works_as_any_user_and_read_only(
    daemon: Daemon, tmp_path: Path, limits: dict[str, Any]
) -> None:
    only_a_program(daemon)

    async def scene(dock: Dock) -> None:
        order = dock.plain(
            dock.attempt(), ["/busybox", "cp", "/data/in.json", "/data/out.json"], "static", upstream={"a": {"value": 7}},
            to_file="/data/in.json", from_file="/data/out.json", container=limits,
        )  # fmt: skip
        status = await dock.end_of(order)
        assert status["state"] == "success", status
        assert status["output"] == {"inline": "7"}

    play(tmp_path, daemon, scene)
    assert daemon.volumes() == []


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("true", "it left no output: there is no file /out/r.json"),
        ("echo '{nonsense' > /out/r.json", "/out/r.json cannot be used as output: not JSON"),
        ("ln -s /etc/passwd /out/r.json", "/out/r.json is a link, not a plain file"),
        ("mkdir /out/r.json", "/out/r.json is a folder, not a plain file"),
        ("mkfifo /out/r.json", "/out/r.json is a special, not a plain file"),
        ("dd if=/dev/zero of=/out/r.json bs=1k count=3", "/out/r.json has 3,072 bytes, more than the 1,000 allowed"),
    ],
)
def test_an_output_that_is_none_is_a_failure_that_names_the_file(
    daemon: Daemon, tmp_path: Path, script: str, said: str
) -> None:
    async def scene(dock: Dock) -> None:
        status = await dock.end_of(dock.shell(dock.attempt(), script, from_file="/out/r.json", output_limit=1000))
        assert (status["state"], status["failure"]["kind"]) == ("failed", "output")
        assert said in failure(status)

    play(tmp_path, daemon, scene)


def test_a_large_output_lies_beside_the_status(daemon: Daemon, tmp_path: Path) -> None:
    async def scene(dock: Dock) -> None:
        script = """printf '"' > /r; head -c 200000 /dev/zero | tr '\\0' x >> /r; printf '"' >> /r"""
        status = await dock.end_of(dock.shell(dock.attempt(), script, from_file="/r"))
        assert status["output"]["size"] == 200002
        assert dock.objects.size(status["output"]["object"]) == 200002

    play(tmp_path, daemon, scene)


def test_one_that_takes_longer_than_one_waits_for_it_is_waited_for_again(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ork.executors.docker.container_monitor.WAIT_SECONDS", 0.1)

    async def scene(dock: Dock) -> None:
        status = await dock.end_of(dock.shell(dock.attempt(), "sleep 0.6; exit 3"))
        assert (status["state"], status["exit_code"]) == ("failed", 3)

    play(tmp_path, daemon, scene)


def test_an_exit_code_is_told_with_the_last_lines(daemon: Daemon, tmp_path: Path) -> None:
    async def scene(dock: Dock) -> None:
        status = await dock.end_of(dock.shell(dock.attempt(), "echo first; echo last >&2; exit 3"))
        assert (status["state"], status["exit_code"], failure(status)) == ("failed", 3, "exit code 3")
        assert sorted(status["failure"]["detail"]["tail"]) == ["first", "last"]

    play(tmp_path, daemon, scene)


def test_more_memory_than_allowed_is_told_as_such(daemon: Daemon, tmp_path: Path) -> None:
    async def scene(dock: Dock) -> None:
        hungry = "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done"
        status = await dock.end_of(dock.shell(dock.attempt(), hungry, container={"memory": 64 << 20}))
        assert (status["state"], status["exit_code"]) == ("failed", 137)
        assert failure(status) == "out of memory, more than 64Mi: exit code 137"

    play(tmp_path, daemon, scene)


def test_a_program_that_is_not_in_the_image_is_a_failure_to_start(daemon: Daemon, tmp_path: Path) -> None:
    async def scene(dock: Dock) -> None:
        status = await dock.end_of(dock.plain(dock.attempt(), ["no-such-program"]))
        assert status["failure"]["kind"] == "start"
        assert "no-such-program" in failure(status)

    play(tmp_path, daemon, scene)


def test_an_image_that_cannot_be_had_is_a_failure_to_start(daemon: Daemon, tmp_path: Path) -> None:
    async def scene(dock: Dock) -> None:
        for number, (image, pull) in enumerate([("127.0.0.1:1/none:1", "missing"), ("never-heard-of", "never")], 1):
            order = dock.plain(dock.attempt(number=number), ["x"], image, container={"pull": pull})
            status = await dock.end_of(order)
            assert status["failure"]["kind"] == "start", status

    play(tmp_path, daemon, scene)


def test_what_is_pulled_is_recorded_by_its_digest_and_passwords_are_used(daemon: Daemon, tmp_path: Path) -> None:
    with own_registry(with_password=True) as registry:
        name = f"{registry.address}/own:1"
        daemon.docker("login", "-u", "ork", "-p", "open sesame", registry.address)
        daemon.docker("tag", "busybox", name)
        digest = daemon.docker("push", name).rpartition("digest: ")[2].split()[0]
        daemon.docker("rmi", name)

        async def scene(dock: Dock) -> None:
            attempt = dock.attempt()
            status = await dock.end_of(dock.plain(attempt, ["true"], name))
            assert status["state"] == "success", status
            gate = dock.gates.of(attempt)
            assert gate is not None
            assert gate["digest"] == digest

        play(tmp_path, daemon, scene)
        daemon.docker("logout", registry.address)


def test_the_log_is_what_was_written_byte_for_byte_and_live(daemon: Daemon, tmp_path: Path) -> None:
    async def scene(dock: Dock) -> None:
        attempt = dock.attempt()
        script = r"printf 'a\r\n\0\377'; until [ -e /go ]; do sleep 0.05; done; printf 'the end'"
        await dock.begin(dock.shell(attempt, script))
        async with asyncio.timeout(30):
            while dock.log(attempt) != b"a\r\n":  # engines keep an unfinished line to themselves
                await asyncio.sleep(0.02)
        daemon.docker("exec", f"ork.{str(attempt.key).replace('/', '.')}", "touch", "/go")
        assert (await dock.ended(attempt))["state"] == "success"
        assert dock.log(attempt) == b"a\r\n\0\xffthe end"

    play(tmp_path, daemon, scene)


def test_a_container_gets_its_own_variables_and_nothing_of_ours(daemon: Daemon, tmp_path: Path) -> None:
    async def scene(dock: Dock) -> None:
        attempt = dock.attempt()
        env = {"NAME": {"value": "x y"}, "PASSWORD": {"secret": "ORK_SECRET_PW"}}
        order = dock.shell(attempt, "env | sort", env=env)
        await dock.begin(replaced(order, secrets=(("ORK_SECRET_PW", "s3"),)))
        assert (await dock.ended(attempt))["state"] == "success"
        names = dict(line.split("=", 1) for line in dock.log(attempt).decode().splitlines())
        assert {"NAME": "x y", "PASSWORD": "s3", "ORK_ATTEMPT_ID": str(attempt.key)}.items() <= names.items()
        assert not [name for name in names if name in ("ORK_TOKEN", "ORK_STORE", "DOCKER_HOST") or "SECRET" in name]

    play(tmp_path, daemon, scene)


def test_limits_user_and_root_are_as_the_worker_config_says(daemon: Daemon, tmp_path: Path) -> None:
    async def scene(dock: Dock) -> None:
        limits = {"user": "1234:99", "read_only": True, "cpu": 0.5, "memory": 32 << 20, "pids": 50}
        attempt = await dock.begin(dock.shell(dock.attempt(), "id -u; id -g; touch /x; sleep 60", container=limits))
        await dock.running(attempt)
        name = f"ork.{str(attempt.key).replace('/', '.')}"
        (facts,) = json.loads(daemon.docker("inspect", name))
        host = facts["HostConfig"]
        assert (host["NanoCpus"], host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (
            5 * 10**8,
            32 << 20,
            32 << 20,
            50,
        )
        assert (host["NetworkMode"], host["Privileged"], host["AutoRemove"]) == ("none", False, False)
        async with asyncio.timeout(30):
            while len(dock.log(attempt).splitlines()) < 3:
                await asyncio.sleep(0.02)
        lines = dock.log(attempt).splitlines()
        refused = [line for line in lines if b"Read-only" in line]  # the other stream: it may come in between
        assert (len(refused), [line for line in lines if line not in refused]) == (1, [b"1234", b"99"])

    play(tmp_path, daemon, scene)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, {"CapEff": 0, "CapBnd": 0, "NoNewPrivs": 1, "pids": 4096}),
        (
            {"capabilities": ("CHOWN", "KILL"), "new_privileges": True, "pids": 50},
            {"CapEff": 0b100001, "CapBnd": 0b100001, "NoNewPrivs": 0, "pids": 50},
        ),
    ],
    ids=["by default", "widened"],
)
def test_privileges_are_dropped_unless_the_worker_config_gives_them(
    daemon: Daemon, tmp_path: Path, config: dict[str, Any], expected: dict[str, int]
) -> None:
    task = TaskSpec("a", "container", Container(), image="busybox")
    wanted = container_document(task, WorkerConfig("w", Where.DOCKER, network="none", **config))

    async def scene(dock: Dock) -> None:
        script = "grep -E '^(CapEff|CapBnd|NoNewPrivs):' /proc/self/status; sleep 60"
        attempt = await dock.begin(dock.shell(dock.attempt(), script, container=wanted))
        await dock.running(attempt)
        (facts,) = json.loads(daemon.docker("inspect", f"ork.{str(attempt.key).replace('/', '.')}"))
        async with asyncio.timeout(30):
            while len(dock.log(attempt).splitlines()) < 3:
                await asyncio.sleep(0.02)
        told = dict(line.decode().split(":") for line in dock.log(attempt).splitlines())
        found = {name: int(value, 16) for name, value in told.items()} | {"pids": facts["HostConfig"]["PidsLimit"]}
        assert found == expected

    play(tmp_path, daemon, scene)


def test_time_that_is_over_ends_the_container_and_is_told(daemon: Daemon, tmp_path: Path) -> None:
    async def scene(dock: Dock) -> None:
        status = await dock.end_of(dock.shell(dock.attempt(), "sleep 600", timeout=0.5, stop_grace_seconds=0.3))
        assert (status["state"], failure(status)) == ("timed_out", "timed out after 0.5s")

    play(tmp_path, daemon, scene)


def test_one_that_is_asked_to_stop_may_say_goodbye_and_one_that_will_not_is_killed(
    daemon: Daemon, tmp_path: Path
) -> None:
    async def scene(dock: Dock) -> None:
        ends = {}
        for number, (name, act) in enumerate({"polite": "echo bye; exit 0", "deaf": ":"}.items(), 1):
            attempt = dock.attempt(number=number)
            script = f"trap '{act}' TERM; echo ready; while :; do sleep 0.05; done"
            await dock.begin(dock.shell(attempt, script, stop_grace_seconds=0.5))
            async with asyncio.timeout(30):
                while b"ready" not in dock.log(attempt):
                    await asyncio.sleep(0.02)
            await dock.container.stop([attempt], at_once=False)
            ends[name] = await dock.ended(attempt)
        assert [status["state"] for status in ends.values()] == ["stopped", "stopped"]
        assert [status["exit_code"] for status in ends.values()] == [0, 137]

    play(tmp_path, daemon, scene)
