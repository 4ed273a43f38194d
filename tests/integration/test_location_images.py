"""Images as code locations, on a real engine and a real registry: what is in them, and what they may not do."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ork.executors.docker.address import engine_address
from ork.executors.docker.engine import Engine
from ork.locations.document import read_document
from ork.locations.image import LABEL, ImageSource, ParserLimits
from ork.locations.source import ScanError
from ork.model.location import Location, Lookup
from tests.docker import Daemon, Registry, busybox, daemon_or_skip, fresh_name, own_registry
from tests.integration.location_images import liar_image, location_image

NO_LOGINS = "/nonexistent"
TIGHT = ParserLimits(seconds=5, memory=128 << 20, processes=40)
FLOWS = {
    "flow.yaml": "name: from_yaml\ntasks:\n  a: {command: 'echo 1'}\n",
    "code/flow.py": "from ork import Workflow\nw = Workflow('from_python')\n@w.task\ndef a() -> int:\n    return 1\n",
}


@pytest.fixture(scope="module")
def daemon() -> Daemon:
    return daemon_or_skip()


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with own_registry() as registry:
        yield registry


def engine(daemon: Daemon) -> Engine:
    return Engine(engine_address(daemon.url))


def source(
    daemon: Daemon,
    image: str,
    *,
    pull: Lookup = Lookup.ALWAYS,
    logins: str = NO_LOGINS,
    limits: ParserLimits | None = None,
    container: str | None = None,
) -> ImageSource:
    location = Location("etl", image=image, pull=pull)
    return ImageSource(location, engine(daemon), container or fresh_name("ork-parse"), logins, {}, limits)


def workflows_in(image: ImageSource) -> list[str]:
    async def look() -> list[str]:
        answer = await image.parse(await image.digest())
        return [found.workflow.name for found in read_document(answer.document).found]

    return asyncio.run(look())


def refused(image: ImageSource) -> ScanError:
    with pytest.raises(ScanError) as error:
        workflows_in(image)
    return error.value


def test_the_workflows_of_an_image_are_found_by_its_digest(daemon: Daemon, registry: Registry) -> None:
    location_image(daemon, "flows", FLOWS)
    pushed = registry.push(daemon, "flows", "flows:latest")
    image = source(daemon, f"{registry.address}/flows:latest")
    assert asyncio.run(image.digest()) == pushed
    assert sorted(workflows_in(image)) == ["from_python", "from_yaml"]
    assert daemon.containers(LABEL) == []


def test_an_image_the_engine_does_not_have_is_fetched(daemon: Daemon, registry: Registry) -> None:
    location_image(daemon, "fetched", FLOWS)
    digest = registry.push(daemon, "fetched", "fetched:latest")
    for name in ("fetched", f"{registry.address}/fetched:latest"):
        daemon.docker("rmi", name)
    assert asyncio.run(engine(daemon).image(f"{registry.address}/fetched@{digest}")) is None
    assert len(workflows_in(source(daemon, f"{registry.address}/fetched"))) == 2


def test_a_new_image_under_the_same_tag_has_another_digest(daemon: Daemon, registry: Registry) -> None:
    image = source(daemon, f"{registry.address}/moving")
    digests = []
    for word in ("1", "2"):
        location_image(daemon, "moving", {"flow.yaml": FLOWS["flow.yaml"].replace("echo 1", f"echo {word}")})
        registry.push(daemon, "moving", "moving:latest")
        digests.append(asyncio.run(image.digest()))
    assert digests[0] != digests[1]


def test_an_image_that_was_built_here_needs_no_registry(daemon: Daemon) -> None:
    location_image(daemon, "built-here", FLOWS)
    assert len(workflows_in(source(daemon, "built-here", pull=Lookup.NEVER))) == 2
    missing = refused(source(daemon, "never-built", pull=Lookup.NEVER))
    assert (missing.code, "the engine has no image never-built" in missing.message) == ("ORK706", True)


def test_a_registry_with_a_password_is_shown_the_login(daemon: Daemon, tmp_path: Path) -> None:
    location_image(daemon, "secret", FLOWS)
    with own_registry(with_password=True) as registry:
        daemon.docker("login", "-u", "ork", "-p", "open sesame", registry.address)
        daemon.docker("tag", "secret", f"{registry.address}/secret")
        daemon.docker("push", "-q", f"{registry.address}/secret")
        daemon.docker("rmi", f"{registry.address}/secret")
        image = f"{registry.address}/secret"
        stranger = refused(source(daemon, image, logins=str(tmp_path)))
        assert (stranger.code, "requires a login" in stranger.message) == ("ORK706", True)
        auth = base64.b64encode(b"ork:open sesame").decode()
        (tmp_path / "config.json").write_text(json.dumps({"auths": {registry.address: {"auth": auth}}}))
        assert len(workflows_in(source(daemon, image, logins=str(tmp_path)))) == 2


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 3", "ended with exit code 3 and printed nothing"),
        ("while :; do :; done", "took more than 5 seconds"),
        ("yes", "took more than 5 seconds|printed more than 16 MiB"),
        ("cat /dev/zero", "printed more than 16 MiB"),
        ("cat /dev/zero >&2", "printed more than 16 MiB"),
        ("bomb() { bomb | bomb & }; bomb; sleep 100", "took more than 5 seconds|printed nothing"),
        ("head -c 300000000 /dev/zero | tail -c 290000000 >/dev/null", "ran out of memory"),
    ],
    ids=["silence", "loop", "chatter", "a gigabyte", "a gigabyte of complaints", "fork bomb", "memory"],
)
def test_a_hostile_image_is_refused_within_its_limits(daemon: Daemon, script: str, why: str) -> None:
    name = liar_image(daemon, fresh_name("liar"), script)
    # Time is short only where it is what must run out: a slow machine needs its while for 16 MiB.
    limits = TIGHT if "5 seconds" in why else TIGHT._replace(seconds=120)
    error = refused(source(daemon, name, pull=Lookup.NEVER, limits=limits))
    assert error.code == "ORK707"
    assert any(each in error.message for each in why.split("|")), error.message
    assert error.is_lasting
    assert daemon.containers(LABEL) == []


def test_an_image_without_a_parser_is_told_what_it_lacks(daemon: Daemon) -> None:
    busybox(daemon, "bare")
    error = refused(source(daemon, "bare", pull=Lookup.NEVER))
    assert "ork-parse is not installed in the image" in error.message
    assert error.is_lasting


def test_a_parser_has_no_network_no_rights_and_nothing_to_write_to(daemon: Daemon) -> None:
    script = (
        "touch /x 2>/dev/null && echo writes; touch /tmp/x || echo 'no tmp'; ls /sys/class/net; "
        "while read name value; do case $name in CapEff:|NoNewPrivs:) echo $name $value;; esac; done </proc/self/status"
    )
    image = source(daemon, liar_image(daemon, "curious", script), pull=Lookup.NEVER)
    answer = asyncio.run(_parse(image))
    assert answer.split() == [b"lo", b"CapEff:", b"0000000000000000", b"NoNewPrivs:", b"1"]


async def _parse(image: ImageSource) -> bytes:
    return (await image.parse(await image.digest())).document


def test_what_a_dead_scheduler_left_is_cleared_away(daemon: Daemon) -> None:
    location_image(daemon, "left", FLOWS)
    name = fresh_name("ork-parse")
    daemon.docker("run", "-d", "--network", "none", "--name", name, "--entrypoint", "sleep", "left", "1000")
    assert len(workflows_in(source(daemon, "left", pull=Lookup.NEVER, container=name))) == 2
    assert name not in daemon.docker("ps", "-a", "--format", "{{.Names}}").split()


def test_who_is_stopped_while_a_parser_runs_takes_it_along(daemon: Daemon) -> None:
    image = source(daemon, liar_image(daemon, "sleeper", "echo begun; sleep 1000"), pull=Lookup.NEVER)

    async def scene() -> None:
        looking = asyncio.create_task(image.parse(await image.digest()))
        while not daemon.docker("ps", "-q", "--filter", f"label={LABEL}"):
            await asyncio.sleep(0.05)
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)

    asyncio.run(scene())
    assert daemon.containers(LABEL) == []


def test_an_engine_out_of_reach_is_no_fault_of_the_image(daemon: Daemon) -> None:
    away = Engine(engine_address("unix:///nonexistent/docker.sock"))
    image = ImageSource(Location("etl", image="x", pull=Lookup.NEVER), away, "x", NO_LOGINS, {})
    error = refused(image)
    assert (error.code, error.is_lasting) == ("ORK612", False)
