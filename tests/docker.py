"""A real container engine for tests: one for each test process, in a folder of its own, gone when the process is.

Images are made of what is on this machine, so that no network is needed. Where an engine cannot be had, tests that need
it skip and say why.
"""

from __future__ import annotations

import atexit
import functools
import io
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin", "/bin"])
_numbers = count(1)


class Daemon:
    """`url` is what DOCKER_HOST would say. Containers get no network of their own: `none` or `host` only."""

    def __init__(self, *options: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ork-dk-"))
        self.url = f"unix://{self.folder}/docker.sock"
        self.log_file = self.folder / "daemon.log"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """On a machine that is busy its own parts may be too slow for each other: tried again."""
        for _ in range(3):
            self._start_process()
            if self._is_ready():
                return
            (self.folder / "pid").unlink(missing_ok=True)
        raise OSError(f"dockerd does not start: {self.log()[-500:]}")

    def _start_process(self) -> None:
        """As a child that ends, with everything in it, when we do."""
        folders = ["--data-root", self.folder / "data", "--exec-root", self.folder / "exec", "-p", self.folder / "pid"]
        quiet = ["--iptables=false", "--bridge=none", "--ip-forward=false", "--shutdown-timeout=1"]
        with open(self.log_file, "ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", program("dockerd"), "-H", self.url, *folders, *quiet, *self._options],
                stdout=log, stderr=log, cwd=self.folder, env={**os.environ, "PATH": PATH},
            )  # fmt: skip

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """SIGTERM ends what runs in it as well; after SIGKILL that goes on, and the next start finds it."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(60)
        (self.folder / "pid").unlink(missing_ok=True)

    def restart(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.stop(how)
        self.start()

    def remove(self) -> None:
        if self._process is not None and self._process.poll() is None:
            for container in self.docker("ps", "-aq").split():
                self.docker("rm", "-fv", container)
            self.stop()
        self._unmount()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _unmount(self) -> None:
        """What one that was killed could not take down itself."""
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for place in reversed([place for place in mounts if place.startswith(f"{self.folder}/")]):
            subprocess.run(["umount", "-l", place], capture_output=True)

    def docker(self, *words: str, input: bytes | None = None) -> str:
        """What the command line tool prints."""
        env = {**os.environ, "DOCKER_CONFIG": str(self.folder / "config")}  # nobody's own credentials
        done = subprocess.run([program("docker"), "-H", self.url, *words], input=input, capture_output=True, env=env)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        return done.stdout.decode(errors="replace").strip()

    def containers(self, label: str = "ork.attempt") -> list[str]:
        """The names of all containers with that label, whatever their state."""
        return self.docker("ps", "-a", "--filter", f"label={label}", "--format", "{{.Names}}").split()

    def volumes(self) -> list[str]:
        return self.docker("volume", "ls", "-q").split()

    def load(self, name: str, files: bytes, *changes: str) -> str:
        """An image made of an archive of its files; `changes` as in a Dockerfile, e.g. `CMD ["/bin/sh"]`."""
        options = [word for change in changes for word in ("-c", change)]
        self.docker("import", *options, "-", name, input=files)
        return name

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def _is_ready(self) -> bool:
        """False once it has given up."""
        for _ in range(600):
            asked = subprocess.run([program("docker"), "-H", self.url, "version"], capture_output=True)
            if asked.returncode == 0:
                return True
            if self._process is None or self._process.poll() is not None:
                break
            time.sleep(0.05)
        return False


class Registry:
    """A real OCI registry on a loopback port; `address` is the first part of the names of images in it."""

    # The password is `open sesame`.
    _ACCOUNTS = "ork:$2b$05$abcdefghijklmnopqrstuupx2xBUC4954936wVIjyyPHmUBFu0wCW\n"

    def __init__(self, *, with_password: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ork-reg-"))
        self.port = _free_port()
        self.address = f"127.0.0.1:{self.port}"
        config = f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {self.folder}/data}}, delete: {{enabled: true}}}}\nhttp: {{addr: '{self.address}'}}\n"
        if with_password:
            (self.folder / "accounts").write_text(self._ACCOUNTS)
            config += f"auth: {{htpasswd: {{realm: ork, path: {self.folder}/accounts}}}}\n"
        (self.folder / "config.yml").write_text(config)
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", program("docker-registry"), "serve", str(self.folder / "config.yml")],
                stdout=log, stderr=log,
            )  # fmt: skip
        self._wait_until_ready()

    def push(self, daemon: Daemon, image: str, name: str) -> str:
        """Puts an image of the engine there under `name:tag`; gives its digest."""
        daemon.docker("tag", image, f"{self.address}/{name}")
        daemon.docker("push", "-q", f"{self.address}/{name}")
        return self.digest(name)

    def digest(self, name: str) -> str:
        repository, _, tag = name.partition(":")
        request = urllib.request.Request(
            f"http://{self.address}/v2/{repository}/manifests/{tag or 'latest'}",
            method="HEAD",
            headers={"Accept": "application/vnd.docker.distribution.manifest.v2+json"},
        )
        with urllib.request.urlopen(request) as answer:
            return str(answer.headers["Docker-Content-Digest"])

    def remove(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait_until_ready(self) -> None:
        for _ in range(600):
            if self._process.poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise OSError(f"docker-registry does not start: {(self.folder / 'log').read_text()[-500:]}")


def program(name: str) -> str:
    return shutil.which(name, path=PATH) or name


@functools.cache
def _shared() -> Daemon | str:
    """One for the whole test process, or why there is none."""
    needed = ("dockerd", "docker", "docker-registry", "busybox")
    if not all(shutil.which(name, path=PATH) for name in needed):
        subprocess.run([ROOT / "scripts/components.sh", "docker"], capture_output=True)
    missing = [name for name in needed if not shutil.which(name, path=PATH)]
    if missing:
        return f"{', '.join(missing)} not installed and cannot be (scripts/components.sh docker)"
    if os.getuid() != 0:
        return "a container engine can only be started as root"
    try:
        daemon = Daemon()
    except (OSError, subprocess.SubprocessError) as error:
        return f"a container engine cannot be started here: {error}"
    atexit.register(daemon.remove)
    return daemon


def daemon_or_skip() -> Daemon:
    found = _shared()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@contextmanager
def own_daemon(*options: str) -> Iterator[Daemon]:
    """One that a test may stop and start as it likes."""
    daemon_or_skip()
    daemon = Daemon(*options)
    try:
        yield daemon
    finally:
        daemon.remove()


@contextmanager
def own_registry(*, with_password: bool = False) -> Iterator[Registry]:
    daemon_or_skip()
    registry = Registry(with_password=with_password)
    try:
        yield registry
    finally:
        registry.remove()


def busybox(daemon: Daemon, name: str = "busybox", *changes: str) -> str:
    """A shell and the usual small programs, 2 MB."""
    binary = Path(program("busybox")).read_bytes()
    names = subprocess.run([program("busybox"), "--list"], capture_output=True, text=True, check=True).stdout.split()
    links = {f"bin/{name}": "busybox" for name in names if name != "busybox"}
    files = packed({"bin/busybox": binary, "etc/passwd": b"root:x:0:0::/:/bin/sh\n"}, links, folders=("tmp",))
    return daemon.load(name, files, "ENV PATH=/bin", *changes)


def only_a_program(daemon: Daemon, name: str = "static") -> str:
    """An image with nothing in it but one static program, `/busybox`: no shell, no folders, no users."""
    return daemon.load(name, packed({"busybox": Path(program("busybox")).read_bytes()}))


@functools.cache
def python_files() -> bytes:
    """The interpreter these tests run in, with its standard library, as an archive of an image's files."""
    prefix, version = Path(sys.base_prefix), f"python{sys.version_info[0]}.{sys.version_info[1]}"
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        interpreter = (prefix / "bin" / version).resolve()
        archive.add(interpreter, "usr/local/bin/python3")
        archive.add(prefix / "lib" / version, f"usr/local/lib/{version}", filter=_wanted_in_image)
        for library in libraries(interpreter, *(prefix / "lib" / version / "lib-dynload").glob("*.so")):
            archive.add(library.resolve(), str(library).lstrip("/"))
        archive.add(program("busybox"), "bin/busybox")
        for name in ("sh", "cat", "ls", "sleep"):
            archive.addfile(_link(f"bin/{name}", "busybox"))
        archive.addfile(_folder("tmp"))
    return made.getvalue()


def python_image(
    daemon: Daemon,
    name: str = "python",
    files: Mapping[str, bytes] | None = None,
    *changes: str,
    base: str | None = None,
) -> str:
    """Python, a shell, and these files; about 70 MB. On top of a `base` that has more, if one is given."""
    base = base or _python_base(daemon)
    if not files and not changes:
        daemon.docker("tag", base, name)
        return name
    with tempfile.TemporaryDirectory(prefix="ork-img-") as folder:
        for path, content in (files or {}).items():
            place = Path(folder, "files", path.lstrip("/"))
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        Path(folder, "files").mkdir(exist_ok=True)
        Path(folder, "Dockerfile").write_text("\n".join([f"FROM {base}", "COPY files/ /", *changes, ""]))
        daemon.docker("build", "-q", "--network", "none", "-t", name, folder)
    return name


@functools.cache
def _python_base(daemon: Daemon) -> str:
    return daemon.load("ork-test-python", python_files(), "ENV PATH=/usr/local/bin:/bin")


def packed(files: Mapping[str, bytes], links: Mapping[str, str] | None = None, folders: Iterable[str] = ()) -> bytes:
    """An archive of programs (files anybody may run), symbolic links and folders anybody may write to."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(content), 0o755
            archive.addfile(member, io.BytesIO(content))
        for path, target in (links or {}).items():
            archive.addfile(_link(path, target))
        for path in folders:
            archive.addfile(_folder(path))
    return made.getvalue()


def fresh_name(prefix: str) -> str:
    return f"{prefix}-{os.getpid()}-{next(_numbers)}"


def _link(path: str, target: str) -> tarfile.TarInfo:
    link = tarfile.TarInfo(path)
    link.type, link.linkname = tarfile.SYMTYPE, target
    return link


def _folder(path: str) -> tarfile.TarInfo:
    folder = tarfile.TarInfo(path)
    folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
    return folder


def _wanted_in_image(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    unwanted = ("/test", "/site-packages", "/__pycache__", "/ensurepip", "/idlelib", "/tkinter", "/lib2to3", ".a")
    return None if member.name.endswith(unwanted) or "/config-" in member.name else member


def libraries(*programs: Path) -> list[Path]:
    told = subprocess.run(["ldd", *programs], capture_output=True, text=True).stdout
    words = [word for line in told.splitlines() if "=>" in line or "/ld-" in line for word in line.split()]
    found = {Path(word) for word in words if word.startswith("/") and not word.endswith(":")}
    return sorted(path for path in found if path.is_file())


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
