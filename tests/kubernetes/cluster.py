"""A real Kubernetes control plane for tests: one for each test process, in a folder of its own, gone when the process is.

etcd, API server and controller manager are the real programs; the node is `node.py`. Where they cannot be had, tests
that need them skip and say why.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from ssl import create_default_context
from typing import Any

import httpx2
import pytest
import yaml
from lightkube import Client, KubeConfig

from ork.executors.kubernetes.access import NEEDED
from tests.docker import Daemon, busybox, daemon_or_skip, program, python_image
from tests.integration.location_images import ork_base
from tests.kubernetes.images import control_plane_image
from tests.kubernetes.node import NodeAgent, addresses
from tests.kubernetes.programs import folder_or_skip
from tests.postgres import free_port

_numbers = count(1)
_CONTROLLERS = (
    "cronjob-controller", "daemonset-controller", "deployment-controller", "disruption-controller", "endpointslice-controller",
    "garbage-collector-controller", "job-controller", "namespace-controller", "node-lifecycle-controller",
    "persistentvolume-binder-controller", "persistentvolume-protection-controller", "persistentvolumeclaim-protection-controller",
    "pod-garbage-collector-controller", "replicaset-controller", "resourcequota-controller",
    "root-ca-certificate-publisher-controller", "serviceaccount-controller", "statefulset-controller", "taint-eviction-controller",
    "ttl-after-finished-controller",
)  # fmt: skip
_AUDIT = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules: [{level: Metadata}]
"""


def scheduler_name(namespace: str) -> str:
    """The user that `Cluster.scheduler` makes, as the API server names it."""
    return f"system:serviceaccount:{namespace}:ork"


@dataclass(frozen=True)
class Request:
    """One request as the API server's audit log has it. `resource` is `pods` or `pods/log`."""

    user: str
    verb: str
    resource: str
    group: str
    namespace: str
    name: str
    status: int


class Images:
    """Images on the node, made when they are first asked for. They have tags, so that nobody pulls them."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon

    @functools.cached_property
    def busybox(self) -> str:
        return busybox(self.daemon, "ork-test/busybox:1")

    @functools.cached_property
    def python(self) -> str:
        """Python and a shell, without Ork."""
        return python_image(self.daemon, "ork-test/python:1")

    @functools.cached_property
    def ork(self) -> str:
        """Python and Ork's worker: `ork-worker` and `ork-parse`."""
        self.daemon.docker("tag", ork_base(self.daemon), "ork-test/ork:1")
        return "ork-test/ork:1"

    @functools.cached_property
    def control_plane(self) -> str:
        """`ork` with everything it needs on Kubernetes, as deploy/Dockerfile builds it."""
        return control_plane_image(self.daemon, "ork-test/control-plane:1")


class Cluster:
    """`url` and `kubeconfig` are for an administrator. `daemon` is the engine that runs the pods of `node`."""

    def __init__(self, programs: Path, daemon: Daemon) -> None:
        self.daemon, self.images = daemon, Images(daemon)
        self.folder = Path(tempfile.mkdtemp(prefix="ork-k8s-"))
        self._programs = programs
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.token = secrets.token_hex(16)
        self.ca, self.certificate = self.folder / "ca.crt", (self.folder / "server.crt", self.folder / "server.key")
        self._make_files()
        self._network = _own_network()
        try:
            self._start_all()
        except BaseException:
            self.remove()
            raise

    # What tests use.

    def client(self, namespace: str = "default") -> Client:
        return Client(KubeConfig.from_file(self.kubeconfig).get(), namespace=namespace, trust_env=False)

    def write_kubeconfig(
        self, name: str, *, url: str | None = None, token: str | None = None, namespace: str = "default"
    ) -> Path:
        """A kubeconfig of its own: by another way (`url` of a proxy), or as somebody else."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [
                {"name": "test", "cluster": {"server": url or self.url, "certificate-authority": str(self.ca)}}
            ],
            "users": [{"name": "test", "user": {"token": token or self.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": namespace}}],
        }
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        path.chmod(0o600)
        return path

    def request(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """The answer to one request as administrator."""
        answer = self._http.request(
            method, path, content=None if body is None else json.dumps(body), headers={"Content-Type": kind}
        )
        if answer.status_code >= 400:
            raise httpx2.HTTPStatusError(answer.text, request=answer.request, response=answer)
        return answer.json() if answer.headers.get("content-type", "").startswith("application/json") else answer.text

    @contextmanager
    def namespace(self, prefix: str = "test", **labels: str) -> Iterator[str]:
        """A new namespace, deleted with all that is in it. `pod_security="baseline"` enforces that standard."""
        name = f"{prefix}-{os.getpid()}-{next(_numbers)}"
        about: dict[str, Any] = {"name": name}
        if "pod_security" in labels:
            about["labels"] = {"pod-security.kubernetes.io/enforce": labels["pod_security"]}
        self.request("POST", "/api/v1/namespaces", {"metadata": about})
        self._until(lambda: self._exists(f"/api/v1/namespaces/{name}/serviceaccounts/default"), "a service account")
        try:
            yield name
        finally:
            self.request("DELETE", f"/api/v1/namespaces/{name}")

    def token_of(self, namespace: str, account: str, seconds: int = 3600) -> str:
        """A token of a service account."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        return str(self.request("POST", path, body)["status"]["token"])

    def scheduler(self, namespace: str, *, url: str | None = None) -> Path:
        """The kubeconfig of a service account that may do what a scheduler needs in the namespace, and nothing else. Its user is
        `scheduler_name(namespace)`."""
        name = {"name": "ork"}
        rules = []
        for verb, resource in NEEDED:
            group, _, path = resource.partition("/")
            rules.append({"apiGroups": [group], "resources": [path], "verbs": [verb]})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", **name}
        subject = {"kind": "ServiceAccount", "namespace": namespace, **name}
        self.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": name})
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
        self.request("POST", f"{path}/roles", {"metadata": name, "rules": rules})
        self.request("POST", f"{path}/rolebindings", {"metadata": name, "roleRef": role, "subjects": [subject]})
        token = self.token_of(namespace, "ork")
        return self.write_kubeconfig(f"scheduler-{namespace}", url=url, token=token, namespace=namespace)

    def requests(self, user: str = "") -> list[Request]:
        """What was asked of the API server since it was started first, by users whose name contains `user`."""
        found = []
        for line in (self.folder / "audit.log").read_text().splitlines():
            with suppress(ValueError):  # the last line may be half written
                request = _request(json.loads(line))
                if request is not None and user in request.user:
                    found.append(request)
        return found

    def restart_api_server(self, how: signal.Signals = signal.SIGKILL, pause: float = 0) -> None:
        """Returns when it is ready again. `pause`: how long it is away at least."""
        self._stop("kube-apiserver", how)
        time.sleep(pause)
        self._start_api_server()

    def remove(self) -> None:
        if getattr(self, "node", None) is not None:
            with suppress(Exception):
                self.node.stop()
        for name in reversed(list(self._processes)):
            self._stop(name, signal.SIGKILL)
        if self._network is not None:
            subprocess.run(
                [program("ip"), "route", "del", "local", f"{self._network}.0/24", "dev", "lo"], capture_output=True
            )
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self, name: str) -> str:
        """`name`: etcd, kube-apiserver or kube-controller-manager."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    # Starting.

    def _start_all(self) -> None:
        for last in (False, False, True):  # a free port may be taken by somebody else before we have it
            try:
                self._start_etcd()
                self.port = free_port()
                self.url = f"https://127.0.0.1:{self.port}"
                self._start_api_server()
                break
            except OSError:
                for name in list(self._processes):
                    self._stop(name, signal.SIGKILL)
                if last:
                    raise
        self.kubeconfig = self.write_kubeconfig("admin")
        headers = {"Authorization": f"Bearer {self.token}"}
        tls = create_default_context(cafile=str(self.ca))
        self._http = httpx2.Client(base_url=self.url, verify=tls, headers=headers, timeout=60, trust_env=False)
        self._start_controller_manager()
        self._make_storage_class()
        self._start_node()

    def _start_etcd(self) -> None:
        self._etcd = f"http://127.0.0.1:{free_port()}"
        peer = f"http://127.0.0.1:{free_port()}"
        shutil.rmtree(self.folder / "etcd", ignore_errors=True)
        self._start(
            "etcd", "--data-dir", self.folder / "etcd", "--listen-client-urls", self._etcd, "--advertise-client-urls", self._etcd,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
            "--unsafe-no-fsync", "--log-level", "error", "--quota-backend-bytes", 4 << 30,
        )  # fmt: skip
        self._until(lambda: _answers(f"{self._etcd}/health"), "etcd", "etcd")

    def _start_api_server(self) -> None:
        files = self.folder
        self._start(
            "kube-apiserver", f"--etcd-servers={self._etcd}", "--bind-address=127.0.0.1", f"--secure-port={self.port}",
            "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/16",
            f"--tls-cert-file={self.certificate[0]}", f"--tls-private-key-file={self.certificate[1]}", f"--cert-dir={files}/run",
            f"--token-auth-file={files}/tokens.csv", "--authorization-mode=RBAC", "--allow-privileged=true",
            "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={files}/accounts.key",
            f"--service-account-signing-key-file={files}/accounts.key", "--kubelet-preferred-address-types=InternalIP",
            f"--audit-policy-file={files}/audit.yaml", f"--audit-log-path={files}/audit.log", "--audit-log-maxsize=10000",
            "--default-unreachable-toleration-seconds=1", "--default-not-ready-toleration-seconds=1", "--profiling=false",
        )  # fmt: skip
        self._until(lambda: _answers(f"{self.url}/readyz", self.ca), "the API server", "kube-apiserver")

    def _start_controller_manager(self) -> None:
        """A node is called lost only when the node agent says so, not because this machine is busy."""
        self._start(
            "kube-controller-manager", f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--secure-port=0",
            f"--service-account-private-key-file={self.folder}/accounts.key", f"--root-ca-file={self.ca}",
            f"--controllers={','.join(_CONTROLLERS)}", "--enable-hostpath-provisioner", "--node-monitor-grace-period=10m",
            "--node-monitor-period=1s", "--pvclaimbinder-sync-period=1s", "--kube-api-qps=500", "--kube-api-burst=1000",
            "--terminated-pod-gc-threshold=0", "--profiling=false",
        )  # fmt: skip
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._until(lambda: self._exists(account), "the controller manager", "kube-controller-manager")

    def _make_storage_class(self) -> None:
        about = {"name": "folders", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
        body = {"metadata": about, "provisioner": "kubernetes.io/host-path", "reclaimPolicy": "Delete"}
        self.request("POST", "/apis/storage.k8s.io/v1/storageclasses", body)

    def _start_node(self) -> None:
        network = self._network
        self.node = NodeAgent(
            name="node-1", url=self.url, token=self.token, ca=self.ca, certificate=self.certificate, engine_url=self.daemon.url,
            folder=self.folder / "pods", addresses=addresses(network) if network else addresses("127.18.0"),
            pause_image=self.images.busybox,
        )  # fmt: skip
        self.node.start()

    def _make_files(self) -> None:
        (self.folder / "tokens.csv").write_text(f'{self.token},admin,admin,"system:masters"\n')
        (self.folder / "audit.yaml").write_text(_AUDIT)
        ca = (self.ca, self.folder / "ca.key")
        key = ("-newkey", "rsa:2048", "-nodes", "-days", "30")
        _openssl("req", "-x509", *key, "-subj", "/CN=ork-test", "-keyout", ca[1], "-out", ca[0])
        names = (
            "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
        )
        _openssl(
            "req", "-x509", *key, "-subj", "/CN=127.0.0.1", "-CA", ca[0], "-CAkey", ca[1], "-addext", names,
            "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", self.certificate[1], "-out", self.certificate[0],
        )  # fmt: skip
        _openssl("genrsa", "-out", self.folder / "accounts.key", "2048")

    def _start(self, name: str, *words: object) -> None:
        """As a child that ends when we do."""
        with open(self.folder / f"{name}.log", "ab") as log:
            self._processes[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", str(self._programs / name), *map(str, words)],
                stdout=log, stderr=log, cwd=self.folder, env={**os.environ, "GOGC": "50"},
            )  # fmt: skip

    def _stop(self, name: str, how: signal.Signals) -> None:
        process = self._processes.pop(name)
        process.send_signal(how)
        process.wait(60)

    def _exists(self, path: str) -> bool:
        return bool(self._http.get(path).status_code == 200)

    def _until(self, holds: Callable[[], bool], what: str, process: str | None = None) -> None:
        for _ in range(2400):
            with suppress(httpx2.HTTPError):
                if holds():
                    return
            if process is not None and self._processes[process].poll() is not None:
                break
            time.sleep(0.05)
        raise OSError(f"{what} does not start: {self.log(process)[-800:] if process else ''}")


def _answers(url: str, ca: Path | None = None) -> bool:
    try:
        context = create_default_context(cafile=str(ca)) if ca else None
        with urllib.request.urlopen(url, timeout=5, context=context) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _openssl(*words: object) -> None:
    done = subprocess.run([program("openssl"), *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"openssl: {done.stderr[-500:]}")


def _own_network() -> str | None:
    """The first three numbers of a network whose every address is this machine's; None where that cannot be had.

    198.18.0.0/15 is set aside for tests of networks: no machine is reached by it.
    """
    for number in range(256):
        network = f"198.18.{number}"
        done = subprocess.run(
            [program("ip"), "route", "add", "local", f"{network}.0/24", "dev", "lo"], capture_output=True, text=True
        )
        if done.returncode == 0:
            return network
        if "File exists" not in done.stderr:
            return None
    return None


def _request(entry: dict[str, Any]) -> Request | None:
    about = entry.get("objectRef")
    if about is None:
        return None
    sub = about.get("subresource")
    return Request(
        user=entry["user"].get("username", ""),
        verb=entry["verb"],
        resource=about.get("resource", "") + (f"/{sub}" if sub else ""),
        group=about.get("apiGroup", ""),
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
        status=int(entry.get("responseStatus", {}).get("code", 0)),
    )


@functools.cache
def _shared() -> Cluster | str:
    """One for the whole test process, or why there is none."""
    daemon = daemon_or_skip()
    programs = folder_or_skip("kubernetes")
    try:
        cluster = Cluster(programs, daemon)
    except (OSError, subprocess.SubprocessError) as error:
        return f"a Kubernetes cluster cannot be started here: {error}"
    atexit.register(cluster.remove)
    return cluster


def cluster_or_skip() -> Cluster:
    found = _shared()
    if isinstance(found, str):
        pytest.skip(found)
    return found
