"""What a fake Cloud Run starts for each task of an execution: a real process of this machine, or a real container."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.docker import Daemon, program


class Mount(NamedTuple):
    source: Path
    target: str
    read_only: bool


class Wanted(NamedTuple):
    image: str
    command: Sequence[str]
    args: Sequence[str]
    env: Mapping[str, str]
    memory: str | None
    mounts: Sequence[Mount]


class Result(NamedTuple):
    code: int
    is_out_of_memory: bool = False
    log: bytes = b""


class Running(Protocol):
    def wait(self, seconds: float) -> Result | None:
        """How it ended; None if it did not within this time."""

    def stop(self, how: signal.Signals) -> None: ...


class Runner(Protocol):
    def has_image(self, image: str) -> bool: ...

    def start(self, wanted: Wanted) -> Running: ...


class ProcessRunner:
    """Images are folders: their programs run in them as processes of this machine. Where a variable or an argument has a path in a
    volume, the process is given the path of the volume's folder here. `variables` are those of the images."""

    def __init__(self, images: Mapping[str, Path], variables: Mapping[str, str] | None = None) -> None:
        self._images = images
        self._variables = dict(variables or {})

    def has_image(self, image: str) -> bool:
        return image in self._images

    def start(self, wanted: Wanted) -> Running:
        beside = os.path.dirname(sys.executable)  # where ork-worker is installed
        path = os.pathsep.join([beside, os.environ["PATH"]])
        words = [_seen_here(word, wanted.mounts) for word in (*wanted.command, *wanted.args)]
        folder = self._images[wanted.image]
        env = {name: _seen_here(value, wanted.mounts) for name, value in wanted.env.items()}
        given = {"HOME": str(folder), "PATH": path, **self._variables, **env}
        process = subprocess.Popen(
            [shutil.which(words[0], path=path) or words[0], *words[1:]],
            env=given, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        return _Process(process)


def _seen_here(text: str, mounts: Sequence[Mount]) -> str:
    for mount in mounts:
        text = text.replace(f"{mount.target}/", f"{mount.source}/")
    return text


class _Process:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._log = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self._log = self._process.stdout.read()

    def wait(self, seconds: float) -> Result | None:
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self.stop(signal.SIGKILL)  # the platform leaves nothing of a task
        self._reader.join(5)
        return Result(code if code >= 0 else 128 - code, log=self._log)

    def stop(self, how: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, how)
        except ProcessLookupError:
            return


class DockerRunner:
    """Real containers with the host's network; `shared` are folders of this machine that each of them sees."""

    def __init__(self, daemon: Daemon, shared: Sequence[Path] = ()) -> None:
        self._daemon = daemon
        self._shared = shared

    def has_image(self, image: str) -> bool:
        engine = [program("docker"), "-H", self._daemon.url]
        asked = [*engine, "image", "inspect", image], [*engine, "pull", "-q", image]
        return any(subprocess.run(words, capture_output=True).returncode == 0 for words in asked)

    def start(self, wanted: Wanted) -> Running:
        name = f"run-{uuid.uuid4().hex[:12]}"
        options = ["--name", name, "--network", "host", "--cap-drop", "ALL", "--label", "cloud-run=1"]
        options += [word for key, value in wanted.env.items() for word in ("-e", f"{key}={value}")]
        if wanted.memory:
            size = wanted.memory.removesuffix("i").lower()
            options += ["-m", size, "--memory-swap", size]
        shared = [Mount(folder, str(folder), False) for folder in self._shared]
        for mount in [*wanted.mounts, *shared]:
            options += ["-v", f"{mount.source}:{mount.target}" + (":ro" if mount.read_only else "")]
        if wanted.command:
            options += ["--entrypoint", wanted.command[0]]
        words = ["run", "-d", *options, wanted.image, *wanted.command[1:], *wanted.args]
        made = subprocess.run([program("docker"), "-H", self._daemon.url, *words], capture_output=True)
        if made.returncode:  # there is no such program in the image, for example
            subprocess.run([program("docker"), "-H", self._daemon.url, "rm", "-f", name], capture_output=True)
            return _NotStarted(Result(127, log=made.stderr))
        return _Container(self._daemon, name)


class _NotStarted:
    def __init__(self, result: Result) -> None:
        self._result = result

    def wait(self, _seconds: float) -> Result | None:
        return self._result

    def stop(self, _how: signal.Signals) -> None:
        return


class _Container:
    def __init__(self, daemon: Daemon, name: str) -> None:
        self._daemon = daemon
        self._name = name
        self._wait = subprocess.Popen(
            [program("docker"), "-H", daemon.url, "wait", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def wait(self, seconds: float) -> Result | None:
        try:
            self._wait.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        state = self._daemon.docker("inspect", "-f", "{{.State.ExitCode}} {{.State.OOMKilled}}", self._name)
        code, oom = state.split()
        asked = [program("docker"), "-H", self._daemon.url, "logs", self._name]
        log = subprocess.run(asked, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
        self._daemon.docker("rm", "-fv", self._name)
        return Result(int(code), oom == "true", log)

    def stop(self, how: signal.Signals) -> None:
        asked = [program("docker"), "-H", self._daemon.url, "kill", "-s", how.name, self._name]
        subprocess.run(asked, capture_output=True)
