"""The Helm chart is well formed, refuses what cannot work in plain words, and gives nobody more rights than needed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from ork.executors.kubernetes.access import NEEDED
from tests.kubernetes import chart, manifests
from tests.kubernetes.chart import BY_REFERENCE, CHART, EMBEDDED, EVERYTHING, TICKS, Document, helm, of_kind, rendered
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.programs import folder_or_skip

pytestmark = pytest.mark.kubernetes
VARIANTS = {"by reference": BY_REFERENCE, "embedded": EMBEDDED, "everything": EVERYTHING, "ticks": TICKS}


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_lint(values: Document) -> None:
    done = helm("lint", "--strict", str(CHART), values=values)
    assert done.returncode == 0, done.stdout + done.stderr


def test_api_server_accepts_every_manifest(cluster: Cluster, tmp_path: Path) -> None:
    """By the schemas of its own OpenAPI, and by a dry run with strict validation."""
    location = chart.write_schemas(cluster, tmp_path)
    program = folder_or_skip("kubeconform") / "kubeconform"
    paths = {each["kind"]: _path(each) for each in _served(cluster)}
    with cluster.namespace("ork", pod_security="restricted") as namespace:
        for values in VARIANTS.values():
            documents = rendered(values)
            text = yaml.safe_dump_all(documents)
            done = subprocess.run(
                [program, "-strict", "-summary", "-schema-location", location, "-"],
                input=text,
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            for document in documents:
                document["metadata"].pop("namespace", None)
                path = paths[document["kind"]].replace("NAMESPACE", namespace)
                answer = cluster.request("POST", f"{path}?dryRun=All&fieldValidation=Strict", document)
                assert answer["kind"] == document["kind"]
    wrong = yaml.safe_dump({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"prots": []}})
    done = subprocess.run(
        [program, "-strict", "-schema-location", location, "-"], input=wrong, capture_output=True, text=True
    )
    assert "prots" in done.stdout


def _served(cluster: Cluster) -> list[Document]:
    groups = (
        "/api/v1",
        *(
            f"/apis/{group}/v1"
            for group in ("apps", "batch", "policy", "networking.k8s.io", "rbac.authorization.k8s.io")
        ),
    )
    found = []
    for group in groups:
        for each in cluster.request("GET", group)["resources"]:
            if "/" not in each["name"]:
                found.append({**each, "group": group})
    return found


def _path(resource: Document) -> str:
    middle = "/namespaces/NAMESPACE" if resource["namespaced"] else ""
    return f"{resource['group']}{middle}/{resource['name']}"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, ["store.existingSecret is not set", "--set embedded=true", "postgresql://"]),
        ({"store": {"existingSecret": "s"}}, ["objects.url is not set", "s3://"]),
        ({**EMBEDDED, "scheduler": {"mode": "tick"}}, ["scheduler.mode=tick needs a database"]),
        ({**EMBEDDED, "ingress": {"enabled": True}}, ["ingress.host is not set"]),
        ({**EMBEDDED, "tasks": {"namespace": "ork"}}, ["Tasks need one of their own"]),
        ({**EMBEDDED, "replicas": 3}, ["replicas", "not allowed"]),
        ({**EMBEDDED, "api": {"replicas": "two"}}, ["api", "replicas", "integer"]),
        ({**EMBEDDED, "objects": {"url": "ftp://x"}}, ["objects", "url"]),
    ],
)  # fmt: skip
def test_mistakes_are_named(values: Document, words: list[str]) -> None:
    done = helm("template", "ork", str(CHART), "--namespace", "ork", "--kube-version", "1.34.0", values=values)
    assert done.returncode != 0
    for word in words:
        assert word in done.stderr


def test_old_clusters_are_refused() -> None:
    done = helm("template", "ork", str(CHART), "--kube-version", "1.32.0", values=EMBEDDED)
    assert "incompatible" in done.stderr


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_pods_are_restricted_and_only_schedulers_have_a_token_of_the_cluster(values: Document) -> None:
    for pod in _pods(rendered(values)):
        containers = [*pod.get("initContainers", []), *pod["containers"]]
        makes_jobs = any(each["name"] in ("scheduler", "tick") for each in containers)
        assert pod["automountServiceAccountToken"] is makes_jobs
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for each in containers:
            rights = each["securityContext"]
            assert (rights["readOnlyRootFilesystem"], rights["allowPrivilegeEscalation"]) == (True, False)
            assert rights["capabilities"] == {"drop": ["ALL"]}
            assert not [
                one
                for one in each["env"]
                if one["name"] in ("ORK_STORE", "ORK_TOKEN") and "sqlite:" not in one["value"]
            ]


def test_admin_token_is_seen_by_no_container_that_serves() -> None:
    for values in VARIANTS.values():
        for pod in _pods(rendered(values)):
            for each in [*pod.get("initContainers", []), *pod["containers"]]:
                if "serve" in each["args"] and "--no-scheduler" in each["args"]:
                    assert not [mount for mount in each["volumeMounts"] if mount["name"] == "tokens"]


def test_project_files_of_the_values_reach_every_pod() -> None:
    documents = rendered(EVERYTHING)
    (project,) = of_kind(documents, "ConfigMap")
    workers = yaml.safe_load(project["data"]["workers.yaml"])
    assert workers == {"default": {"service_account": "ork-task"}, "large": {"memory": "8Gi"}}
    assert yaml.safe_load(project["data"]["ork.yaml"]) == {"default_where": "kubernetes"}
    for deployment in of_kind(documents, "Deployment"):
        mounts = deployment["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
        assert {"/srv/flows/ork.yaml", "/srv/flows/pods/gpu.yaml"} <= {each["mountPath"] for each in mounts}


def test_rights_are_in_the_namespace_of_tasks_only() -> None:
    for values in VARIANTS.values():
        documents = rendered(values)
        assert not of_kind(documents, "ClusterRole")
        assert not of_kind(documents, "ClusterRoleBinding")
        (role,), (binding,) = of_kind(documents, "Role"), of_kind(documents, "RoleBinding")
        assert role["metadata"]["namespace"] == binding["metadata"]["namespace"] == "ork-tasks"
        assert "*" not in str(role["rules"])
        (namespace,) = of_kind(documents, "Namespace")
        assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "baseline"


def _pods(node: Any) -> list[Document]:
    if isinstance(node, dict):
        own = [node] if "containers" in node else []
        return own + [each for child in node.values() for each in _pods(child)]
    if isinstance(node, list):
        return [each for child in node for each in _pods(child)]
    return []


def test_plain_manifests_are_the_chart() -> None:
    for path, text in manifests.files().items():
        assert (manifests.FOLDER / path).read_text() == text, "python -m tests.kubernetes.manifests --write"


def test_role_has_exactly_the_rights_that_the_executor_needs() -> None:
    (role,) = of_kind(rendered(BY_REFERENCE), "Role")
    granted = {
        (verb, f"{group}/{resource}")
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert granted == set(NEEDED)
