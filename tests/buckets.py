"""Servers that stand for the buckets of three clouds: one of each for a test process, gone when the process is.

fake-gcs-server for Google Cloud Storage, moto and MinIO for S3, Azurite for Azure. Where one cannot be had, tests that need it skip and
say why. MinIO is not built on the way, for that takes minutes.
"""

from __future__ import annotations

import atexit
import base64
import functools
import http.client
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

import pytest

from tests.postgres import free_port

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(
    os.environ.get("ORK_TESTS_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ork-tests"
)
AZURE_ACCOUNT, AZURE_KEY = "orktests", base64.b64encode(b"not secret" * 4).decode()
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "not-secret",
    "AZURE_STORAGE_ACCOUNT_KEY": AZURE_KEY,
}
_numbers = count(1)


class Service:
    """A server in a process of its own, which ends with ours."""

    def __init__(
        self, make_command: Callable[[int, Path], Sequence[object]], environment: dict[str, str] | None = None
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ork-bucket-"))
        self.port = free_port()
        self._command = [str(word) for word in make_command(self.port, self.folder)]
        self._environment = {**os.environ, **(environment or {})}
        self.start()

    def start(self) -> None:
        with open(self.folder / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *self._command],
                stdout=log, stderr=log, cwd=self.folder, env=self._environment,
            )  # fmt: skip
        for _ in range(1200):
            if self._process.poll() is not None:
                break
            if self._answers():
                return
            time.sleep(0.05)
        raise OSError(f"{self._command[0]} does not start: {(self.folder / 'server.log').read_text()[-500:]}")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait(30)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def _answers(self) -> bool:
        try:
            self.ask("GET", "/")
        except OSError:
            return False
        return True


def new_bucket(service: str) -> str:
    """The URL of a prefix in a bucket that nobody else uses, on a server of this process: gs, s3, minio or az. Sets the variables
    with credentials that its clients expect. Skips where there is no such server."""
    os.environ.update(CREDENTIALS)
    name = f"bucket{os.getpid()}-{next(_numbers)}"
    server = server_or_skip(service)
    if service == "gs":
        status, _ = server.ask("POST", "/storage/v1/b?project=test", b'{"name":"%b"}' % name.encode())
        url = f"gs://{name}/team?endpoint=http://127.0.0.1:{server.port}"
    elif service in ("s3", "minio"):
        url = f"s3://{name}/team?region=us-east-1&endpoint=http://127.0.0.1:{server.port}"
        status = _make_s3_bucket(name, url)
    else:
        url = f"az://{name}/team?account={AZURE_ACCOUNT}&endpoint=http://127.0.0.1:{server.port}/{AZURE_ACCOUNT}"
        status = _make_container(name, url)
    assert status in (200, 201), (service, status)
    return url


def _make_s3_bucket(name: str, url: str) -> int:
    from ork.objects.buckets.address import read_address
    from ork.objects.buckets.requests import Request
    from ork.objects.buckets.s3 import S3Bucket

    return S3Bucket(read_address(url))._service.ask(Request("PUT", f"/{name}")).status


def _make_container(name: str, url: str) -> int:
    from ork.objects.buckets.address import read_address
    from ork.objects.buckets.azure import AzureBucket
    from ork.objects.buckets.requests import Request

    return AzureBucket(read_address(url))._service.ask(Request("PUT", f"/{name}", {"restype": "container"})).status


def server_or_skip(service: str) -> Service:
    found = _server(service)
    if isinstance(found, str):
        pytest.skip(found)
    return found


@functools.cache
def _server(service: str) -> Service | str:
    try:
        server = {"gs": start_gcs, "s3": start_s3, "minio": start_minio, "az": start_azure}[service]()
    except OSError as error:
        return str(error)
    atexit.register(server.remove)
    return server


def start_gcs() -> Service:
    program = component("gcs", "fake-gcs-server-*") / "fake-gcs-server"
    return Service(
        lambda port, _: [program, "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", port, "-log-level", "error",
                         "-public-host", f"127.0.0.1:{port}"]
    )  # fmt: skip


def start_s3() -> Service:
    pytest.importorskip("moto.server", reason="moto is not installed: nothing is tried on S3")
    return Service(lambda port, _: [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", port])


def start_minio() -> Service:
    folder = cached("minio-*")
    if not (folder / "minio").exists():
        raise OSError(f"{folder.name} is not built: `scripts/components.sh minio` builds it with Go, in minutes")
    return Service(
        lambda port, folder_of_data: [folder / "minio", "server", "--quiet", "--address", f"127.0.0.1:{port}", folder_of_data / "data"],
        {"MINIO_ROOT_USER": CREDENTIALS["AWS_ACCESS_KEY_ID"], "MINIO_ROOT_PASSWORD": CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
         "MINIO_BROWSER": "off"},
    )  # fmt: skip


def start_azure() -> Service:
    program = component("azure", "azurite-*") / "node_modules/.bin/azurite-blob"
    quiet = ["--silent", "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck"]
    return Service(
        lambda port, _: [program, "--blobHost", "127.0.0.1", "--blobPort", port, *quiet],
        {"AZURITE_ACCOUNTS": f"{AZURE_ACCOUNT}:{AZURE_KEY}"},
    )


def component(name: str, folder: str) -> Path:
    """Where scripts/components.sh put it. OSError if that fails."""
    done = subprocess.run([ROOT / "scripts/components.sh", name], capture_output=True, text=True)
    found = cached(folder)
    if done.returncode != 0:
        raise OSError(
            f"{found.name} is not installed and cannot be (scripts/components.sh {name}): {done.stderr[-300:]}"
        )
    return found


def cached(folder: str) -> Path:
    """The folder of a component, in the version that scripts/components.sh names."""
    wanted = re.search(
        rf"^[A-Z]+=\$CACHE/({folder.replace('*', '.*')})$", (ROOT / "scripts/components.sh").read_text(), re.M
    )
    assert wanted is not None
    return CACHE / wanted[1]
