"""Kubernetes: where tasks run (a namespace of a cluster), and the settings of a pod that a worker config has."""

from __future__ import annotations

from ork.model.record import Record

KUBERNETES = "kubernetes"
NVIDIA = "nvidia.com/gpu"


class KubernetesPlace(Record):
    """A namespace of the cluster that a context of the kubeconfig names. None: the default of the kubeconfig, or of the pod that
    the scheduler runs in."""

    context: str | None = None
    namespace: str | None = None

    def __str__(self) -> str:
        return f"{self.context or ''}/{self.namespace or ''}"


class ClusterDefaults(Record):
    """`kubernetes` in ork.yaml. `image` has Ork in it; it brings the worker into images without it. `objects_secret` is a Secret with
    the credentials of the object store."""

    place: KubernetesPlace = KubernetesPlace()
    image: str | None = None
    objects_secret: str | None = None


class Toleration(Record):
    """As in the specification of a pod; `seconds` is its `tolerationSeconds`."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    seconds: int | None = None

    def manifest(self) -> dict[str, str | int]:
        """The entry of a pod's specification."""
        entries = {
            "key": self.key,
            "operator": self.operator,
            "value": self.value,
            "effect": self.effect,
            "tolerationSeconds": self.seconds,
        }
        return {name: value for name, value in entries.items() if value is not None}


class PodSettings(Record):
    """The keys of a worker config that only Kubernetes knows. `pod_template` is a file, relative to the project's folder."""

    namespace: str | None = None
    context: str | None = None
    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    image_pull_secrets: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    pod_template: str | None = None


def cluster_executor(place: KubernetesPlace, usual: KubernetesPlace) -> str:
    """The name of the executor of a place. That of the project's own place is called `kubernetes`."""
    return KUBERNETES if place == usual else f"{KUBERNETES}:{place}"


def is_on_kubernetes(executor: str) -> bool:
    return executor.partition(":")[0] == KUBERNETES


def gpus(text: str) -> tuple[str, int] | None:
    """Resource and number of accelerators: `2` are of NVIDIA, `amd.com/gpu=1` names the resource. None if it is neither."""
    resource, _, number = text.rpartition("=")
    resource = resource or NVIDIA
    if not number.isdecimal() or not 1 <= int(number) <= 64 or "/" not in resource:
        return None
    return resource, int(number)
