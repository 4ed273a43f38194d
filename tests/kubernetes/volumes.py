"""The volumes of a pod as folders of this machine."""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from typing import Any

from tests.kubernetes.api import Api, ApiError

Document = dict[str, Any]


class NotYetError(Exception):
    """What a pod refers to is not there. The agent tries again, as a kubelet does."""


async def prepare(api: Api, pod: Document, folder: Path) -> dict[str, Path]:
    """A folder for each volume, by the volume's name. Calling it again keeps what is there."""
    found = {}
    group = (pod["spec"].get("securityContext") or {}).get("fsGroup")
    for volume in pod["spec"].get("volumes") or []:
        found[volume["name"]] = await _folder_of(api, pod, volume, folder / volume["name"], group)
    return found


async def _folder_of(api: Api, pod: Document, volume: Document, place: Path, group: int | None) -> Path:
    if "hostPath" in volume:
        return Path(volume["hostPath"]["path"])
    if "persistentVolumeClaim" in volume:
        claimed = await _claimed(api, pod, volume["persistentVolumeClaim"]["claimName"])
        claimed.mkdir(parents=True, exist_ok=True)
        _share(claimed, group)
        return claimed
    place.mkdir(parents=True, exist_ok=True)
    if "emptyDir" in volume:
        place.chmod(0o777)
        _share(place, group)
        return place
    if "projected" in volume:
        sources = [
            (kind, about) for source in volume["projected"]["sources"] or [] for kind, about in source.items() if about
        ]
        mode = volume["projected"].get("defaultMode", 0o644)
    else:
        kind = next(kind for kind in ("secret", "configMap", "downwardAPI") if kind in volume)
        sources = [(kind, volume[kind])]
        mode = volume[kind].get("defaultMode", 0o644)
    for kind, about in sources:
        for path, content in (await _files(api, pod, kind, about)).items():
            _write(place / path, content, mode, group)
    return place


async def _files(api: Api, pod: Document, kind: str, about: Document) -> dict[str, bytes]:
    if kind == "serviceAccountToken":
        return {about["path"]: await _token(api, pod, about)}
    if kind == "downwardAPI":
        return {item["path"]: field(pod, item["fieldRef"]["fieldPath"]).encode() for item in about["items"]}
    plural = {"secret": "secrets", "configMap": "configmaps"}[kind]
    name = about.get("secretName") or about.get("name")
    content = await content_of(api, pod["metadata"]["namespace"], plural, name, bool(about.get("optional")))
    if "items" not in about:
        return content
    return {item["path"]: content[item["key"]] for item in about["items"] if item["key"] in content}


async def content_of(api: Api, namespace: str, plural: str, name: str, optional: bool) -> dict[str, bytes]:
    """The keys of a Secret or ConfigMap."""
    try:
        found = await api.get(f"/api/v1/namespaces/{namespace}/{plural}/{name}")
    except ApiError as error:
        if error.status != 404:
            raise
        if optional:
            return {}
        raise NotYetError(f'{plural.removesuffix("s")} "{name}" not found') from None
    if plural == "secrets":
        return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}
    binary = {key: base64.b64decode(value) for key, value in (found.get("binaryData") or {}).items()}
    return {**{key: value.encode() for key, value in (found.get("data") or {}).items()}, **binary}


def field(pod: Document, path: str) -> str:
    """What a fieldRef names."""
    keyed = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
    if keyed:
        return str((pod["metadata"].get(keyed[1]) or {}).get(keyed[2], ""))
    found: Any = pod
    for part in path.split("."):
        found = (found or {}).get(part)
    if isinstance(found, dict):
        return "\n".join(f'{key}="{value}"' for key, value in sorted(found.items()))
    return "" if found is None else str(found)


async def _token(api: Api, pod: Document, about: Document) -> bytes:
    bound = {"kind": "Pod", "apiVersion": "v1", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    wanted: Document = {"expirationSeconds": about.get("expirationSeconds", 3600), "boundObjectRef": bound}
    if "audience" in about:
        wanted["audiences"] = [about["audience"]]
    account = pod["spec"].get("serviceAccountName") or "default"
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/serviceaccounts/{account}/token"
    made = await api.post(path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": wanted})
    return str(made["status"]["token"]).encode()


async def _claimed(api: Api, pod: Document, name: str) -> Path:
    try:
        claim = await api.get(f"/api/v1/namespaces/{pod['metadata']['namespace']}/persistentvolumeclaims/{name}")
    except ApiError as error:
        if error.status != 404:
            raise
        raise NotYetError(f'persistentvolumeclaim "{name}" not found') from None
    if (claim.get("status") or {}).get("phase") != "Bound":
        raise NotYetError(f"pod has unbound immediate PersistentVolumeClaims ({name})")
    volume = await api.get(f"/api/v1/persistentvolumes/{claim['spec']['volumeName']}")
    return Path(volume["spec"]["hostPath"]["path"])


def _write(path: Path, content: bytes, mode: int, group: int | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    if group is not None:
        os.chown(path, -1, group)
        mode |= 0o440
    path.chmod(mode)


def _share(place: Path, group: int | None) -> None:
    if group is not None:
        os.chown(place, -1, group)
        place.chmod(place.stat().st_mode | 0o2770)
