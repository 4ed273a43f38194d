"""A project whose tasks run on a real cluster, as a person uses it: `ork` in processes of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.docker import Daemon, fresh_name, python_image
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.subject import jobs_of, pods_of

PACE = {"ORK_HEARTBEAT_SECONDS": "2", "ORK_LEASE_SECONDS": "10", "ORK_RENEW_SECONDS": "3"}


class Scene:
    """`kubeconfig` may be that of a proxy. `ledger` is a file that all pods can append to."""

    def __init__(
        self,
        folder: Path,
        cluster: Cluster,
        namespace: str,
        environment: dict[str, str],
        objects: str,
        kubeconfig: Path,
        objects_secret: str | None = None,
    ) -> None:
        self.folder, self.cluster, self.namespace = folder, cluster, namespace
        self.environment = {**environment, **PACE, "KUBECONFIG": str(kubeconfig), "ORK_OBJECTS": objects}
        self.shared = folder / "shared"
        self.shared.mkdir()
        self.ledger = self.shared / "ledger"
        secret = f", objects_secret: {objects_secret}" if objects_secret else ""
        about = f"{{namespace: {namespace}, image: '{cluster.images.ork}'{secret}}}"
        self.write("ork.yaml", f"default_where: kubernetes\nkubernetes: {about}\n")
        mount = f"{{name: main, volumeMounts: [{{name: shared, mountPath: {self.shared}}}]}}"
        volume = f"{{name: shared, hostPath: {{path: {self.shared}}}}}"
        self.write("pod.yaml", f"spec:\n  volumes: [{volume}]\n  containers: [{mount}]\n")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def workers(self, image: str) -> None:
        self.write("workers.yaml", f"default: {{image: '{image}', pod_template: pod.yaml, memory: 256Mi}}\n")

    def project_image(self, daemon: Daemon, files: dict[str, str]) -> str:
        """Python, these files, and no Ork."""
        content = {f"app/{name}": text.encode() for name, text in files.items()}
        return python_image(daemon, f"{fresh_name('ork-test/project')}:1", content, "WORKDIR /app")

    def ork(self, *words: str, code: int | None = 0, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "ork", *words], cwd=self.folder, env={**self.environment, **environment},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stdout + done.stderr

    @contextmanager
    def scheduler(self) -> Iterator[subprocess.Popen[bytes]]:
        process = self.begin("scheduler")
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        with open(self.folder / "said.log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "ork", *words], cwd=self.folder, env=self.environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def started(self, workflow: str, *words: str) -> str:
        """The id of a new run that a scheduler is to take."""
        return str(json.loads(self.ork("run", workflow, "--detach", "--json", *words))["id"])

    def show(self, run: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ork("show", run, "--json"))
        return found

    def is_over(self, run: str) -> bool:
        return self.show(run)["status"] in ("success", "failed", "cancelled")

    def ended(self, run: str, seconds: float = 240) -> dict[str, Any]:
        self.until(lambda: self.is_over(run), seconds, 1.0)
        return self.show(run)

    def until(self, is_so: Callable[[], object], seconds: float = 240, pause: float = 0.2) -> None:
        end = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < end, (self.folder / "said.log").read_text()[-3000:]
            time.sleep(pause)

    def starts(self) -> list[str]:
        """What user code wrote into the ledger when it was started: names of attempts."""
        return self.ledger.read_text().split() if self.ledger.exists() else []

    def leaves_nothing(self, seconds: float = 60) -> None:
        """Jobs, pods and containers of the namespace are gone, or soon will be."""
        self.until(lambda: not jobs_of(self.cluster, self.namespace), seconds)
        self.until(lambda: not pods_of(self.cluster, self.namespace), seconds)
