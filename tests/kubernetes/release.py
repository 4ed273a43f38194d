"""An installation by the chart on the test cluster, and its API as clients in the cluster reach it."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx2

from tests.kubernetes.chart import CHART, Document, helm
from tests.kubernetes.cluster import Cluster

WAIT = ("--wait", "--timeout", "8m")


class Release:
    def __init__(self, cluster: Cluster, namespace: str, values: Document) -> None:
        self.cluster, self.namespace, self.values = cluster, namespace, values
        self.tasks = f"{namespace}-tasks"

    def install(self) -> None:
        self._helm("install", "ork", str(CHART), *WAIT, values=self.values)

    def upgrade(self, **changes: Any) -> None:
        self.values = {**self.values, **changes}
        self._helm("upgrade", "ork", str(CHART), *WAIT, values=self.values)

    def rollback(self) -> None:
        self._helm("rollback", "ork", *WAIT)

    def test(self) -> None:
        """`helm test`, which leaves nothing when it succeeds."""
        self._helm("test", "ork", "--timeout", "8m")

    def uninstall(self) -> None:
        self._helm("uninstall", "ork", *WAIT)

    @property
    def token(self) -> str:
        secret = self.cluster.request("GET", f"/api/v1/namespaces/{self.namespace}/secrets/ork-tokens")
        return base64.b64decode(secret["data"]["admin"]).decode()

    def addresses(self) -> list[str]:
        """The addresses that the Service would send a request to."""
        path = f"/apis/discovery.k8s.io/v1/namespaces/{self.namespace}/endpointslices"
        found = []
        for piece in self.cluster.request("GET", path)["items"]:
            for endpoint in piece.get("endpoints") or []:
                if endpoint["conditions"].get("ready"):
                    found += [f"http://{each}:{piece['ports'][0]['port']}" for each in endpoint["addresses"]]
        return found

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = httpx2.request(
            method,
            f"{self.addresses()[0]}/api/v1{path}",
            content=body if isinstance(body, str) or body is None else json.dumps(body),
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=60,
            trust_env=False,
        )
        assert answer.status_code < 300, answer.text
        return answer.json()

    def run(self, workflow: str) -> str:
        """The id of a new run."""
        return str(self.ask("POST", f"/workflows/{workflow}/runs", {})["id"])

    def pods(self, part: str) -> list[Document]:
        """Of a part of the control plane."""
        path = f"/api/v1/namespaces/{self.namespace}/pods?labelSelector=app.kubernetes.io/component={part}"
        found: list[Document] = self.cluster.request("GET", path)["items"]
        return found

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        for _ in range(600):
            if holds():
                return
            time.sleep(0.5)
        raise AssertionError(f"waited in vain: {what}\n{self.explained()}")

    def ended(self, run: str) -> Document:
        """The run, when it has ended."""
        self.until(f"run {run}", lambda: self._is_over(run))
        found: Document = self.ask("GET", f"/runs/{run}")
        return found

    def _is_over(self, run: str) -> bool:
        return self.ask("GET", f"/runs/{run}")["finished_at"] is not None

    def left(self) -> list[str]:
        """What is in both namespaces that Kubernetes does not make by itself."""
        found = []
        for group in ("/api/v1", "/apis/apps/v1", "/apis/batch/v1", "/apis/policy/v1", "/apis/networking.k8s.io/v1", "/apis/rbac.authorization.k8s.io/v1"):  # fmt: skip
            for resource in self.cluster.request("GET", group)["resources"]:
                if "list" not in resource["verbs"] or resource["name"] in (
                    "events",
                    "namespaces",
                    "nodes",
                    "componentstatuses",
                ):
                    continue
                for item in self.cluster.request("GET", f"{group}/{resource['name']}")["items"]:
                    about = item["metadata"]
                    if about.get("namespace") in (self.namespace, self.tasks) or about.get("labels", {}).get("app.kubernetes.io/name") == "ork":  # fmt: skip
                        found.append(f"{resource['name']}/{about['name']}")
        names = [each["metadata"]["name"] for each in self.cluster.request("GET", "/api/v1/namespaces")["items"]]
        own = ("serviceaccounts/default", "configmaps/kube-root-ca.crt", "secrets/ork-store")
        return [each for each in found if each not in own] + [name for name in names if name == self.tasks]

    def explained(self) -> str:
        """The state of all pods and the ends of their logs, for a message."""
        lines = []
        for namespace in (self.namespace, self.tasks):
            for pod in self.cluster.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]:
                name = pod["metadata"]["name"]
                lines.append(f"{namespace}/{name}: {json.dumps(pod['status'])[:1500]}")
                for container in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]:
                    try:
                        log = self.cluster.request(
                            "GET",
                            f"/api/v1/namespaces/{namespace}/pods/{name}/log?container={container['name']}&tailLines=15",
                        )
                        lines.append(f"  {container['name']}: {log[-1500:]}")
                    except httpx2.HTTPError:
                        continue
        return "\n".join(lines)

    def _helm(self, *words: str, values: Document | None = None) -> None:
        done = helm(*words, "--namespace", self.namespace, values=values, kubeconfig=self.cluster.kubeconfig)
        assert done.returncode == 0, f"{done.stderr}\n{self.explained()}"


class Load:
    """Starts a run every so often until it is left, through whichever API is ready, and keeps what went wrong."""

    def __init__(self, release: Release, workflow: str, every: float = 1.0) -> None:
        self._release, self._workflow, self._every = release, workflow, every
        self.runs: list[str] = []
        self.problems: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._stop.wait(self._every):
            try:
                self.runs.append(self._release.run(self._workflow))
            except (AssertionError, httpx2.HTTPError, IndexError) as error:
                self.problems.append(repr(error))
