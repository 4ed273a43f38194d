"""What tests of several rooms share: the real command line, in an environment without surprises."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from ork.system import inherited_variables, system

# A slow machine is no reason to fail: properties are judged by what they find, not by how long it took.
settings.register_profile("ork", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", parent=settings.get_profile("ork"), max_examples=25)  # for `make check`
settings.load_profile("ork")

# A shell that starts us in the background has these ignored, and so would everything that tests start and interrupt.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

# Tests of Firestore load gRPC. Its fork handlers can close descriptors of other tests in the same process; read when it is imported.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

# As `make` does: tests run as on a user's machine, where a first import writes bytecode.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]


# What starts processes, servers and whole programs is left out of the quick loop by its place.
SLOW_PLACES = ("acceptance", "chaos", "integration", "kubernetes")


@pytest.hookimpl(trylast=True)  # after the order of tests was shuffled
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that take many minutes run only where they are asked for by name: `pytest -m soak`.

    Tests on Kubernetes come last, because its programs may still be built meanwhile.
    """
    for item in items:
        if item.path.relative_to(config.rootpath).parts[1] in SLOW_PLACES:
            item.add_marker("slow")
        if system.NAME != "Linux" and item.get_closest_marker("linux"):
            item.add_marker(pytest.mark.skip("only Linux has this"))
    items.sort(key=lambda item: item.get_closest_marker("kubernetes") is not None)
    if "soak" in config.option.markexpr:
        return
    long = [item for item in items if item.get_closest_marker("soak")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


@pytest.fixture(scope="session")
def tree() -> Path:
    """The root of the source tree."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def plain_environment() -> dict[str, str]:
    """The environment without Ork's own settings, colour and whatever would slow Python's start down."""
    dropped = ("ORK_", "OTEL_", "PYTEST_")
    unwanted = {"PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "FORCE_COLOR", "CLICOLOR_FORCE"}
    kept = {k: v for k, v in os.environ.items() if not k.startswith(dropped) and k not in unwanted}
    return {**kept, "NO_COLOR": "1", **inherited_variables()}


@pytest.fixture
def ork_cli(plain_environment: dict[str, str]) -> OrkCli:
    """`ork_cli("run", "flow.yaml", cwd=folder)`: the real program in a process of its own."""

    def call(*args: str, cwd: Path, env: dict[str, str] | None = None, timeout: float = 120) -> object:
        return subprocess.run(
            [sys.executable, "-m", "ork", *args],
            cwd=cwd,
            env={**plain_environment, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=timeout,
        )

    return call


def environment_with(config: pytest.Config, *requirements: str) -> Path:
    """A virtual environment with these requirements (arguments of pip): made once, kept in pytest's cache; a loud skip where
    they cannot be installed."""
    from ork.worker.build.builds import Build, digest_of

    files = [Path(each).read_bytes() for each in requirements if Path(each).is_file()]
    shelf = config.cache.mkdir("ork_environments")  # type: ignore[union-attr]
    build = Build(str(shelf), digest_of([sys.version, *requirements, *files]))

    def make(folder: str) -> None:
        for argv in (
            [sys.executable, "-m", "venv", folder],
            [f"{folder}/bin/python", "-m", "pip", "install", "-q", *requirements],
        ):
            subprocess.run(argv, check=True, capture_output=True, text=True, timeout=600)

    try:
        build.make(make)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"{' '.join(requirements)} cannot be installed here: {str(error.stderr)[-300:]}")
    return Path(build.folder)
