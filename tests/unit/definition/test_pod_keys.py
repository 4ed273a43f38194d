"""Keys of worker configs for Kubernetes, `kubernetes` in ork.yaml, and pod templates."""

from __future__ import annotations

import pytest

from ork.definition.pod_template import parse_pod_template
from ork.definition.project_file import load_project
from ork.definition.workers_file import load_workers
from ork.errors import DefinitionError
from ork.model.infra import Pull, Where
from ork.model.kubernetes import ClusterDefaults, KubernetesPlace, PodSettings, Toleration, gpus

CONFIG = """
big:
  where: kubernetes
  cpu: 2
  memory: 4Gi
  image: etl:1
  user: 1000
  pull: always
  service_account: etl
  gpu: 2
  namespace: team-a
  context: prod
  node_selector: {disk: ssd, example.com/zone: a}
  tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}, {operator: Exists}]
  image_pull_secrets: [registry]
  labels: {team: data}
  pod_template: pods/big.yaml
"""


def test_all_keys_of_kubernetes_are_read() -> None:
    configs, problems = load_workers(CONFIG.encode())
    assert problems == ()
    big = configs["big"]
    assert (big.where, big.image, big.user, big.pull, big.gpu) == (Where.KUBERNETES, "etl:1", "1000", Pull.ALWAYS, "2")
    assert big.pod == PodSettings(
        "team-a", "prod", (("disk", "ssd"), ("example.com/zone", "a")),
        (Toleration("gpu", "Exists", effect="NoSchedule"), Toleration(operator="Exists")), ("registry",),
        (("team", "data"),), "pods/big.yaml",
    )  # fmt: skip
    assert big.pod.tolerations[0].manifest() == {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ("{where: kubernetes, user: app}", "ORK608"),
        ("{where: kubernetes, gpu: nvidia-l4}", "ORK608"),
        ("{where: kubernetes, gpu: 0}", "ORK608"),
        ("{where: kubernetes, namespace: Team_A}", "ORK608"),
        ("{where: kubernetes, volumes: ['/a:/b']}", "ORK608"),
        ("{where: kubernetes, labels: {ork.dev/run: x}}", "ORK608"),
        ("{where: kubernetes, labels: {a: 'not allowed'}}", "ORK608"),
        ("{where: kubernetes, tolerations: [{effect: NoSchedule}]}", "ORK608"),
        ("{where: kubernetes, tolerations: [{key: a, effect: Never}]}", "ORK104"),
        ("{where: kubernetes, tolerations: [{key: a, colour: red}]}", "ORK101"),
        ("{where: docker, namespace: a}", "ORK608"),
        ("{where: cloudrun, gpu: 2}", "ORK104"),
    ],
)
def test_wrong_values_are_refused_at_their_place(config: str, code: str) -> None:
    configs, problems = load_workers(f"x: {config}\n".encode())
    assert (configs, [problem.code for problem in problems]) == ({}, [code])
    assert problems[0].position


def test_the_project_names_namespace_context_image_and_secret() -> None:
    given = b"kubernetes: {namespace: ork, context: prod, image: 'ork:0.2.0', objects_secret: bucket-keys}\n"
    project, problems = load_project(given)
    assert problems == ()
    assert project.kubernetes == ClusterDefaults(KubernetesPlace("prod", "ork"), "ork:0.2.0", "bucket-keys")


@pytest.mark.parametrize(
    ("text", "found"),
    [("1", ("nvidia.com/gpu", 1)), ("amd.com/gpu=2", ("amd.com/gpu", 2)), ("gpu=2", None), ("x", None), ("65", None)],
)
def test_accelerators_are_a_number_or_a_resource_with_one(text: str, found: tuple[str, int] | None) -> None:
    assert gpus(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("spec: {priorityClassName: low}", {"metadata": {}, "spec": {"priorityClassName": "low"}}),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {annotations: {a: b}}\nspec: {hostNetwork: false}",
            {"metadata": {"annotations": {"a": "b"}}, "spec": {"hostNetwork": False}},
        ),
        (
            "kind: PodTemplate\ntemplate: {spec: {runtimeClassName: gvisor}}",
            {"metadata": {}, "spec": {"runtimeClassName": "gvisor"}},
        ),
    ],
)
def test_a_pod_template_is_a_pod(text: str, found: object) -> None:
    assert parse_pod_template(text.encode(), "pod.yaml") == found


@pytest.mark.parametrize(
    "text",
    ["", "- a", "kind: Deployment\nspec: {}", "image: x", "spec: [a]", "spec: {a: !!python/name:os.system x}", "{"],
)
def test_anything_else_is_no_pod_template(text: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        parse_pod_template(text.encode(), "pod.yaml")
    assert "pod_template pod.yaml" in refused.value.message
