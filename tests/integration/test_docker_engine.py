"""The verbs of a container engine, asked of a real one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ork.errors import AnswerLostError, EngineError, EngineUnreachableError, UsageError
from ork.executors.docker.address import engine_address
from ork.executors.docker.archives import Entry, archive_of, only_file
from ork.executors.docker.engine import BYTE_EXACT_LOG, Engine
from tests.docker import Daemon, busybox, daemon_or_skip, fresh_name, own_registry, packed

pytestmark = pytest.mark.slow  # an engine and its images take a moment

Scene = Callable[[Engine], Coroutine[Any, Any, None]]


@pytest.fixture
def daemon() -> Daemon:
    daemon = daemon_or_skip()
    busybox(daemon)
    return daemon


def play(daemon: Daemon, scene: Scene) -> None:
    asyncio.run(scene(Engine(engine_address(daemon.url))))


def shell(script: str) -> dict[str, Any]:
    host = {"NetworkMode": "none", "LogConfig": BYTE_EXACT_LOG}
    return {"Image": "busybox", "Cmd": ["sh", "-c", script], "HostConfig": host}


def test_creating_twice_under_one_name_gives_one_container(daemon: Daemon) -> None:
    async def scene(engine: Engine) -> None:
        name = fresh_name("twice")
        first, second = [await engine.create(name, shell("true")) for _ in range(2)]
        assert (first.is_new, second.is_new) == (True, False)
        assert first.id == second.id
        await engine.remove(first.id)

    play(daemon, scene)


def test_what_a_container_writes_is_told_byte_by_byte_and_so_is_its_exit_code(daemon: Daemon) -> None:
    async def scene(engine: Engine) -> None:
        made = await engine.create(fresh_name("says"), shell(r"printf 'a\r\n\0\377no newline'; printf err >&2; exit 3"))
        await engine.start(made.id)
        assert await engine.wait(made.id) == 3
        told = [piece async for piece in engine.logs(made.id, follow=True)]
        assert b"".join(data for stream, data in told if stream == 1) == b"a\r\n\0\xffno newline"
        assert b"".join(data for stream, data in told if stream == 2) == b"err"
        await engine.remove(made.id)

    play(daemon, scene)


def test_files_go_in_before_the_start_and_come_out_after_the_end(daemon: Daemon) -> None:
    async def scene(engine: Engine) -> None:
        made = await engine.create(fresh_name("files"), shell("cat /in/a > /b; ln -s /b /link"))
        assert await engine.look_at(made.id, "/in") is None
        await engine.put_archive(made.id, "/", archive_of([Entry("in", None, 0o755), Entry("in/a", b"[1]", 0o644)]))
        await engine.start(made.id)
        assert await engine.wait(made.id) == 0
        packed = await engine.get_archive(made.id, "/b", limit=100)
        assert packed is not None
        assert only_file(packed) == b"[1]"
        assert await engine.get_archive(made.id, "/nothing", limit=100) is None
        kinds = [await engine.look_at(made.id, path) for path in ("/b", "/in", "/link")]
        assert [facts and facts.kind for facts in kinds] == ["file", "folder", "link"]
        await engine.remove(made.id)

    play(daemon, scene)


def test_a_file_larger_than_allowed_is_not_read_to_its_end(daemon: Daemon) -> None:
    async def scene(engine: Engine) -> None:
        made = await engine.create(fresh_name("large"), shell("dd if=/dev/zero of=/big bs=1M count=8"))
        await engine.start(made.id)
        await engine.wait(made.id)
        with pytest.raises(AnswerLostError):
            await engine.get_archive(made.id, "/big", limit=1000)
        await engine.remove(made.id)

    play(daemon, scene)


def test_only_a_plain_file_is_taken_out_of_an_archive() -> None:
    assert only_file(packed({"a": b"x"})) == b"x"
    for archive in (packed({}, {"a": "/etc/passwd"}), packed({}, folders=["a"]), packed({"a": b"", "b": b""}), b"junk"):
        with pytest.raises(ValueError):
            only_file(archive)


def test_containers_are_found_by_their_labels_and_gone_once_removed(daemon: Daemon) -> None:
    async def scene(engine: Engine) -> None:
        label = fresh_name("mark")
        made = await engine.create(fresh_name("found"), {**shell("sleep 60"), "Labels": {label: "x"}})
        await engine.start(made.id)
        assert [each["Id"] for each in await engine.containers([label])] == [made.id]
        with pytest.raises(EngineError):
            await engine.remove(made.id)  # it runs
        await engine.signal(made.id, "KILL")
        assert await engine.wait(made.id) == 137
        await engine.remove(made.id)
        await engine.remove(made.id)
        assert await engine.inspect(made.id) is None

    play(daemon, scene)


def test_images_are_pulled_with_the_registrys_word_if_that_fails(daemon: Daemon) -> None:
    with own_registry() as registry:
        digest = registry.push(daemon, "busybox", "small:1")
        daemon.docker("rmi", f"{registry.address}/small:1")

        async def scene(engine: Engine) -> None:
            name = f"{registry.address}/small:1"
            assert await engine.image(name) is None
            await engine.pull(name)
            image = await engine.image(name)
            assert image is not None
            assert image["RepoDigests"] == [f"{registry.address}/small@{digest}"]
            for missing in (f"{registry.address}/small:2", "127.0.0.1:1/small:3"):
                with pytest.raises(EngineError, match=f"the image {missing} cannot be pulled: "):
                    await engine.pull(missing)

        play(daemon, scene)


def test_a_registry_with_a_password_wants_it(daemon: Daemon) -> None:
    with own_registry(with_password=True) as registry:
        daemon.docker("login", "-u", "ork", "-p", "open sesame", registry.address)
        daemon.docker("tag", "busybox", f"{registry.address}/own:1")
        daemon.docker("push", f"{registry.address}/own:1")
        daemon.docker("logout", registry.address)

        async def scene(engine: Engine) -> None:
            with pytest.raises(EngineError):
                await engine.pull(f"{registry.address}/own:1")
            account = {"username": "ork", "password": "open sesame", "serveraddress": registry.address}
            await engine.pull(f"{registry.address}/own:1", account)

        play(daemon, scene)


def test_where_nobody_listens_nothing_was_asked() -> None:
    async def scene() -> None:
        with pytest.raises(EngineUnreachableError, match="no container engine at unix:///nowhere"):
            await Engine(engine_address("unix:///nowhere")).ping()

    asyncio.run(scene())


@pytest.mark.parametrize("text", ["http://x", "unix://relative", "tcp://", "tcp://h:x", "tcp://h/path"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not the address of a container engine"):
        engine_address(text)
