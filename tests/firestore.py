"""The official Firestore emulator for tests: one for each test process, gone when the process is.

Where it cannot be had, tests that need it skip and say why.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path

import pytest

from tests.postgres import free_port

_JAR = "platform/cloud-firestore-emulator/cloud-firestore-emulator.jar"
_MAIN = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"
_SDK_FOLDERS = (
    "/usr/lib/google-cloud-sdk",
    "/usr/share/google-cloud-sdk",
    "/opt/google-cloud-sdk",
    "/snap/google-cloud-cli/current",
)
HOST = "FIRESTORE_EMULATOR_HOST"
"""The variable that says where an emulator is."""
_numbers = count(1)


class Emulator:
    """A database of its own for each test: another project, which the emulator makes when it is first used."""

    def __init__(self, jar: Path) -> None:
        self.host = f"127.0.0.1:{free_port()}"
        self._log = tempfile.NamedTemporaryFile(prefix="ork-firestore-", suffix=".log")  # noqa: SIM115 (open as long as we are)
        port = self.host.rpartition(":")[2]
        options = ["-Xms64m", "-Xmx512m", "-XX:+UseSerialGC"]
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "java", *options, "-cp", str(jar), _MAIN, "start", "--host=127.0.0.1", f"--port={port}"],
            stdout=self._log, stderr=self._log, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self._wait_until_ready()

    def new_database(self) -> str:
        return f"firestore://ork-test-{os.getpid()}-{next(_numbers)}/ork-state"

    def remove(self) -> None:
        self._process.kill()
        self._process.wait(30)
        self._log.close()

    def _wait_until_ready(self) -> None:
        address = ("127.0.0.1", int(self.host.rpartition(":")[2]))
        for _ in range(1200):
            if self._process.poll() is not None:
                break
            try:
                socket.create_connection(address, 1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise OSError(f"the Firestore emulator does not start: {Path(self._log.name).read_text()[-500:]}")


@functools.cache
def _emulator() -> Emulator | str:
    """One for the whole test process, or why there is none."""
    jar = find_jar()
    if jar is None:
        return "the Firestore emulator is not installed: gcloud components install cloud-firestore-emulator"
    if shutil.which("java") is None:
        return "the Firestore emulator needs Java, which is not installed"
    try:
        emulator = Emulator(jar)
    except (OSError, subprocess.SubprocessError) as error:
        return f"the Firestore emulator cannot be started here: {error}"
    atexit.register(emulator.remove)
    return emulator


def find_jar() -> Path | None:
    gcloud = shutil.which("gcloud")
    folders = [Path(gcloud).resolve().parent.parent] if gcloud else []
    folders += [*map(Path, _SDK_FOLDERS), Path.home() / "google-cloud-sdk"]
    return next((folder / _JAR for folder in folders if (folder / _JAR).is_file()), None)


def emulator_or_skip() -> Emulator:
    pytest.importorskip(
        "google.cloud.firestore_v1", reason="google-cloud-firestore is not installed: nothing is tried on Firestore"
    )
    found = _emulator()
    if isinstance(found, str):
        pytest.skip(found)
    return found
