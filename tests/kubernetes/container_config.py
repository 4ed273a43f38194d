"""A container of a pod in the words of the engine: environment, mounts, limits, rights."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.kubernetes.api import Api
from tests.kubernetes.quantities import amount
from tests.kubernetes.volumes import NotYetError, content_of, field

Document = dict[str, Any]
POD_LABEL = "io.kubernetes.pod.uid"


async def environment(api: Api, pod: Document, container: Document, given: dict[str, str]) -> dict[str, str]:
    """`given` is what every container of the cluster gets."""
    namespace = pod["metadata"]["namespace"]
    found = dict(given)
    for source in container.get("envFrom") or []:
        for kind, plural in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
            if kind in source:
                about = source[kind]
                content = await content_of(api, namespace, plural, about["name"], bool(about.get("optional")))
                found |= {source.get("prefix", "") + key: value.decode() for key, value in content.items()}
    for each in container.get("env") or []:
        if "valueFrom" not in each:
            found[each["name"]] = expanded(str(each.get("value", "")), found)
            continue
        value = await _referred(api, pod, container, each["valueFrom"])
        if value is not None:
            found[each["name"]] = value
    return found


async def _referred(api: Api, pod: Document, container: Document, source: Document) -> str | None:
    if "fieldRef" in source:
        return field(pod, source["fieldRef"]["fieldPath"])
    if "resourceFieldRef" in source:
        kind, _, name = source["resourceFieldRef"]["resource"].partition(".")
        return str(int(amount(((container.get("resources") or {}).get(kind) or {}).get(name, 0))))
    kind, plural = ("secretKeyRef", "secrets") if "secretKeyRef" in source else ("configMapKeyRef", "configmaps")
    about, optional = source[kind], bool(source[kind].get("optional"))
    content = await content_of(api, pod["metadata"]["namespace"], plural, about["name"], optional)
    if about["key"] not in content:
        if optional:
            return None
        kind = {"secrets": "Secret", "configmaps": "ConfigMap"}[plural]
        raise NotYetError(f"couldn't find key {about['key']} in {kind} {pod['metadata']['namespace']}/{about['name']}")
    return content[about["key"]].decode()


def expanded(text: str, known: dict[str, str]) -> str:
    """`$(NAME)` replaced where NAME is known; `$$` is a dollar sign."""

    def value(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else known.get(found[1], found[0])

    return re.sub(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)", value, text)


def mounts(container: Document, volumes: dict[str, Path], env: dict[str, str]) -> list[Document]:
    found = []
    for mount in container.get("volumeMounts") or []:
        source = volumes[mount["name"]]
        below = expanded(mount["subPathExpr"], env) if "subPathExpr" in mount else mount.get("subPath", "")
        if below:
            source = source / below
            if not source.exists():
                source.mkdir(parents=True)
                source.chmod(0o777)
        readonly = bool(mount.get("readOnly"))
        found.append({"Type": "bind", "Source": str(source), "Target": mount["mountPath"], "ReadOnly": readonly})
    return found


class RunsAsRootError(Exception):
    """The pod must not run as root, and this container would."""


def user_of(pod: Document, container: Document, image: Document) -> str:
    """What the engine calls `User`: empty for the image's own."""
    rights = {**(pod["spec"].get("securityContext") or {}), **(container.get("securityContext") or {})}
    own = str((image.get("Config") or {}).get("User") or "")
    user = rights.get("runAsUser")
    if rights.get("runAsNonRoot"):
        name = str(user) if user is not None else own.partition(":")[0] or "0"
        if not name.isdigit():
            raise RunsAsRootError(
                f"container has runAsNonRoot and image has non-numeric user ({name}), cannot verify user is non-root"
            )
        if int(name) == 0:
            raise RunsAsRootError("container has runAsNonRoot and image will run as root")
    if user is None:
        return own
    group = rights.get("runAsGroup")
    return str(user) if group is None else f"{user}:{group}"


def body(
    pod: Document,
    container: Document,
    image: Document,
    env: dict[str, str],
    mounted: list[Document],
    shared_processes: str | None,
) -> Document:
    """What is sent to the engine to create it. All pods share the network of this machine."""
    rights = container.get("securityContext") or {}
    shared = pod["spec"].get("securityContext") or {}
    limits = (container.get("resources") or {}).get("limits") or {}
    caps = rights.get("capabilities") or {}
    groups = [*(shared.get("supplementalGroups") or []), *([shared["fsGroup"]] if "fsGroup" in shared else [])]
    host: Document = {
        "NetworkMode": "host",
        "Mounts": mounted,
        "ReadonlyRootfs": bool(rights.get("readOnlyRootFilesystem")),
        "Privileged": bool(rights.get("privileged")),
        "CapAdd": caps.get("add") or [],
        "CapDrop": caps.get("drop") or [],
        "GroupAdd": [str(group) for group in groups],
        "LogConfig": {"Type": "json-file", "Config": {}},
    }
    if rights.get("allowPrivilegeEscalation") is False:
        host["SecurityOpt"] = ["no-new-privileges"]
    if "memory" in limits:
        host["Memory"] = host["MemorySwap"] = int(amount(limits["memory"]))
    if "cpu" in limits:
        host["NanoCpus"] = int(amount(limits["cpu"]) * 10**9)
    if shared_processes:
        host["PidMode"] = f"container:{shared_processes}"
    made: Document = {
        "Image": container["image"],
        "Hostname": pod["metadata"]["name"][:63],
        "Env": [f"{name}={value}" for name, value in env.items()],
        "User": user_of(pod, container, image),
        "Tty": bool(container.get("tty")),
        "Labels": {
            POD_LABEL: pod["metadata"]["uid"],
            "io.kubernetes.pod.name": pod["metadata"]["name"],
            "io.kubernetes.pod.namespace": pod["metadata"]["namespace"],
            "io.kubernetes.container.name": container["name"],
        },
        "HostConfig": host,
    }
    if container.get("command"):
        made["Entrypoint"] = [expanded(word, env) for word in container["command"]]
    if container.get("args"):
        made["Cmd"] = [expanded(word, env) for word in container["args"]]
    if container.get("workingDir"):
        made["WorkingDir"] = container["workingDir"]
    return made
