"""Jobs as requests to Kubernetes. Pure.

One Job for an attempt, named after it; or one indexed Job for a launch group. The program runs in the container `main`. What Ork's image does
beside a program without Ork (`ork.worker.pod`) runs in init containers, one of which stays as a sidecar to upload the output.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import ceil
from posixpath import basename, dirname
from typing import Any, NamedTuple

from ork.errors import DocumentError
from ork.executors.executor import GroupOrder
from ork.executors.kubernetes.template import merged
from ork.executors.worker_variables import attempt_variables, group_variables
from ork.model.digest import sha256
from ork.model.kubernetes import gpus
from ork.model.value_reference import FILES_IN_IMAGE
from ork.objects.buckets.environment import PASSED
from ork.objects.group_members import members_text
from ork.objects.references import needs_files

PREFIX = "ork-"
LABEL = "ork.dev/installation"
RUN_LABEL, TASK_LABEL, ATTEMPT_LABEL, GROUP_LABEL = "ork.dev/run", "ork.dev/task", "ork.dev/attempt", "ork.dev/group"
ATTEMPTS_ANNOTATION = "ork.dev/attempts"  # one attempt, or those of a group as `members_text` writes them
MAIN, BRING, BEGIN, UPLOAD = "main", "ork-bring", "ork-begin", "ork-upload"
WORKER_FOLDER, FILES_FOLDER, OUTPUT_FOLDER = "/ork-worker", "/ork-files", "/ork-output"
POD_VARIABLE = "ORK_POD"
UPLOAD_GRACE_SECONDS = 600
# Where the platform ends a pod although the worker should have ended its task at the timeout.
DEADLINE_MARGIN_SECONDS = 60.0
STATUS_SECONDS = 10  # in which a stopped worker writes its last status
_INPUT, _INPUTS = "input", "inputs"  # as `ork.worker.pod` names them
_NAME_HASH = 24
_LABEL_SIZE = 63
_OWN_REQUESTS = {"cpu": "10m", "memory": "64Mi"}
_OWN_MEMORY = 512 << 20
_PULL = {"missing": "IfNotPresent", "always": "Always", "never": "Never"}


class Program(NamedTuple):
    """What a plain image is given: its arguments, its variables, and those that are entries of Secrets (`secret/key`)."""

    words: Sequence[str] = ()
    env: Mapping[str, str] = {}
    secrets: Mapping[str, str] = {}


def is_plain(spec: Mapping[str, Any]) -> bool:
    """True if nothing of ours runs in the attempt's own container."""
    return bool(spec["kind"] == "container")


def brings_worker(spec: Mapping[str, Any]) -> bool:
    """True if Ork's own image has a part in the pod."""
    return is_plain(spec) or not spec["container"]["kubernetes"]["has_ork"]


def job_name(attempt: str, installation: str) -> str:
    """The same for the same attempt, whichever scheduler asks."""
    return PREFIX + _hash([installation, attempt])


def group_label(group: str, installation: str) -> str:
    """The label by which the Jobs of a launch group are found."""
    return _hash([installation, "group", group])


def group_job_name(label: str, generation: int) -> str:
    """A group whose Job has ended may get another one, of the next generation."""
    return f"{PREFIX}g-{label}-{generation}"


def attempt_job(
    spec: Mapping[str, Any],
    installation: str,
    *,
    objects_url: str,
    token: str,
    ork_image: str | None,
    program: Program | None = None,
) -> dict[str, Any]:
    """The Job of one attempt; `program` is that of a plain image. `ork_image` has Ork in it."""
    attempt = spec["attempt"]
    ours = attempt_variables(attempt, objects_url, token)
    if is_plain(spec):
        assert program is not None
        pod = _plain_pod(spec, ours, _needed(ork_image, spec), program)
    else:
        pod = _worker_pod(spec, ours, ork_image, [objects_url, attempt])
    labels = {**_labels(spec, installation), ATTEMPT_LABEL: label_value(attempt.replace("/", "."))}
    rules = {"backoffLimit": 0, "completions": 1, "parallelism": 1}
    return _job(job_name(attempt, installation), labels, attempt, rules, pod, spec)


def group_job(
    group: GroupOrder,
    spec: Mapping[str, Any],
    installation: str,
    generation: int,
    *,
    objects_url: str,
    ork_image: str | None,
) -> dict[str, Any]:
    """The indexed Job of a launch group; `spec` is that of its first attempt. `backoffLimit` stays unset: 0 would end the Job at the
    first failure."""
    pod = _worker_pod(spec, group_variables(group, objects_url), ork_image, [objects_url, ""])
    label = group_label(group.id, installation)
    rules = {
        "completionMode": "Indexed",
        "completions": len(group.orders),
        "parallelism": min(group.parallelism, len(group.orders)),
        "backoffLimitPerIndex": 0,
    }
    attempts = members_text([str(order.attempt.key) for order in group.orders])
    labels = {**_labels(spec, installation), GROUP_LABEL: label}
    return _job(group_job_name(label, generation), labels, attempts, rules, pod, spec)


def label_value(text: str) -> str:
    """The text as the value of a label: shortened, with a hash, if it is too long or has other characters."""
    allowed = "".join(each if (each.isalnum() and each.isascii()) or each in "-_." else "_" for each in text)
    if allowed == text and len(text) <= _LABEL_SIZE and text[:1].isalnum() and text[-1:].isalnum():
        return text
    short = allowed[: _LABEL_SIZE - 14].strip("-_.")
    return f"{short}.{_hash(text)[:12]}".strip("-_.")


def _job(
    name: str,
    labels: dict[str, str],
    attempts: str,
    rules: dict[str, Any],
    pod: dict[str, Any],
    spec: Mapping[str, Any],
) -> dict[str, Any]:
    wanted = spec["container"]["kubernetes"]
    ours = {"metadata": {"labels": {**wanted["labels"], **labels}}, "spec": pod}
    template = merged(_for_this_pod(wanted["template"] or {}, pod), ours)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels, "annotations": {ATTEMPTS_ANNOTATION: attempts}},
        # A pod that is being deleted is not replaced by another one while it may run.
        "spec": {**rules, "podReplacementPolicy": "Failed", "template": template},
    }


def _for_this_pod(template: dict[str, Any], pod: Mapping[str, Any]) -> dict[str, Any]:
    """The user's template without what it says about containers of ours that this pod does not have."""
    missing = {BRING, BEGIN, UPLOAD} - {each["name"] for each in pod.get("initContainers", ())}
    theirs = template.get("spec", {}).get("initContainers")
    if not theirs:
        return template
    kept = [each for each in theirs if each.get("name") not in missing]
    return {**template, "spec": {**template["spec"], "initContainers": kept}}


# ── pods ─────────────────────────────────────────────────────────────────────────────────────────


def _worker_pod(
    spec: Mapping[str, Any], ours: Mapping[str, str], ork_image: str | None, arguments: list[str]
) -> dict[str, Any]:
    """A pod in which a worker runs."""
    secrets = spec["container"]["kubernetes"]["secrets"]
    main = _main(spec, _own_variables(spec, ours) + _secret_variables(secrets))
    main |= _store_access(spec)
    pod = _pod(spec, main, int(spec["stop_grace_seconds"]) + STATUS_SECONDS)
    if spec["timeout"] is not None:
        pod["activeDeadlineSeconds"] = _deadline(spec)
    if not brings_worker(spec):
        main["command"] = ["ork-worker"]
        return pod
    bootstrap = f"{WORKER_FOLDER}/ork/worker/bootstrap.py"
    main["command"] = ["python3", "-S", "-E", bootstrap, *map(_literal, arguments)]
    main["volumeMounts"] = [{"name": BRING, "mountPath": WORKER_FOLDER, "readOnly": True}]
    pod["volumes"] = [{"name": BRING, "emptyDir": {}}]
    bring = _own_container(BRING, spec, _needed(ork_image, spec), ["bring", WORKER_FOLDER], [])
    bring["volumeMounts"] = [{"name": BRING, "mountPath": WORKER_FOLDER}]
    pod["initContainers"] = [bring]
    return pod


def _plain_pod(spec: Mapping[str, Any], ours: Mapping[str, str], ork_image: str, program: Program) -> dict[str, Any]:
    """A pod whose program knows nothing of Ork."""
    to_file, from_file = spec["to_file"], spec["from_file"]
    main = _main(spec, _variables(program.env) + _secret_variables(program.secrets))
    if program.words:
        main["args"] = [_literal(each) for each in program.words]
    pod = _pod(spec, main, UPLOAD_GRACE_SECONDS if from_file else int(spec["stop_grace_seconds"]))
    own = _own_variables(spec, ours)
    references = _secret_variables(spec["container"]["kubernetes"]["secrets"])
    begin = _own_container(BEGIN, spec, ork_image, ["begin", FILES_FOLDER], own + references) | _store_access(spec)
    begin["volumeMounts"] = [{"name": "ork-files", "mountPath": FILES_FOLDER}]
    pod["volumes"], pod["initContainers"], mounts = [{"name": "ork-files", "emptyDir": {}}], [begin], []
    if from_file:
        if dirname(from_file) == "/":
            raise DocumentError(f"{from_file} must be in a folder: a volume cannot be mounted at /")
        path = f"{OUTPUT_FOLDER}/{basename(from_file)}"
        upload = _own_container(UPLOAD, spec, ork_image, ["upload", FILES_FOLDER, _literal(path)], own)
        upload |= _store_access(spec)
        upload["restartPolicy"] = "Always"  # which makes it a sidecar
        upload["volumeMounts"] = [
            {"name": "ork-files", "mountPath": FILES_FOLDER},
            {"name": "ork-output", "mountPath": OUTPUT_FOLDER},
        ]
        pod["volumes"].append({"name": "ork-output", "emptyDir": {}})
        pod["initContainers"] = [upload, begin]
        mounts.append({"name": "ork-output", "mountPath": dirname(from_file)})
    if needs_files(spec):
        mounts.append({"name": "ork-files", "mountPath": FILES_IN_IMAGE, "subPath": _INPUTS, "readOnly": True})
    if to_file:
        mounts.append({"name": "ork-files", "mountPath": to_file, "subPath": _INPUT, "readOnly": True})
    if mounts:
        main["volumeMounts"] = mounts
    if spec["timeout"] is not None:
        pod["activeDeadlineSeconds"] = max(1, ceil(spec["timeout"]))
    return pod


def _pod(spec: Mapping[str, Any], main: dict[str, Any], grace: int) -> dict[str, Any]:
    wanted, user = spec["container"]["kubernetes"], _user(spec)
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": grace,
        "enableServiceLinks": False,
        # A token of the service account only where the config names an account.
        "automountServiceAccountToken": wanted["service_account"] is not None,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, **({"fsGroup": user["gid"]} if user else {})},
        "containers": [main],
    }
    if wanted["service_account"] is not None:
        pod["serviceAccountName"] = wanted["service_account"]
    if wanted["node_selector"]:
        pod["nodeSelector"] = wanted["node_selector"]
    if wanted["tolerations"]:
        pod["tolerations"] = wanted["tolerations"]
    if wanted["image_pull_secrets"]:
        pod["imagePullSecrets"] = [{"name": name} for name in wanted["image_pull_secrets"]]
    return pod


def _main(spec: Mapping[str, Any], env: list[dict[str, Any]]) -> dict[str, Any]:
    wanted, user = spec["container"], _user(spec)
    limits: dict[str, str] = {}
    if wanted["cpu"] is not None:
        limits["cpu"] = f"{max(1, round(wanted['cpu'] * 1000))}m"
    if wanted["memory"] is not None:
        limits["memory"] = str(int(wanted["memory"]))
    requests = dict(limits)
    if wanted["kubernetes"]["gpu"] is not None:
        resource, number = gpus(wanted["kubernetes"]["gpu"]) or ("", 0)
        limits[resource] = str(number)
    security: dict[str, Any] = {"allowPrivilegeEscalation": False}
    if user:
        security |= {"runAsUser": user["uid"], "runAsGroup": user["gid"], "runAsNonRoot": user["uid"] != 0}
    if wanted["read_only"]:
        security["readOnlyRootFilesystem"] = True
    made: dict[str, Any] = {
        "name": MAIN,
        "image": wanted["image"],
        "imagePullPolicy": _PULL[wanted["pull"]],
        "env": env,
        "securityContext": security,
        "terminationMessagePolicy": "File",
    }
    if limits:
        made["resources"] = {"limits": limits, "requests": requests}
    return made


def _own_container(
    name: str, spec: Mapping[str, Any], image: str, command: list[str], env: list[dict[str, Any]]
) -> dict[str, Any]:
    """A container of ours beside the program. It runs as the same user, or as root: the program may leave files that only its
    user can read."""
    user, memory = _user(spec), spec["container"]["memory"]
    limits = {} if memory is None else {"limits": {"memory": str(max(int(memory), _OWN_MEMORY))}}
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": _PULL[spec["container"]["pull"]],
        "command": ["ork-worker", *command],
        "env": env,
        "resources": {"requests": _OWN_REQUESTS, **limits},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "runAsUser": user["uid"] if user else 0,
            "runAsGroup": user["gid"] if user else 0,
        },
    }


def _user(spec: Mapping[str, Any]) -> dict[str, int] | None:
    text = spec["container"]["user"]
    if text is None:
        return None
    uid, _, gid = text.partition(":")
    return {"uid": int(uid), "gid": int(gid or uid)}


def _deadline(spec: Mapping[str, Any]) -> int:
    """Of a pod whose worker ends its task at the task's own timeout."""
    return ceil(float(spec["timeout"]) + float(spec["stop_grace_seconds"]) + DEADLINE_MARGIN_SECONDS)


def _labels(spec: Mapping[str, Any], installation: str) -> dict[str, str]:
    return {LABEL: installation, RUN_LABEL: label_value(spec["run_id"]), TASK_LABEL: label_value(spec["task"])}


def _variables(env: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"name": name, "value": _literal(value)} for name, value in env.items()]


def _own_variables(spec: Mapping[str, Any], ours: Mapping[str, str]) -> list[dict[str, Any]]:
    """Of a container in which a part of Ork runs. Those of the worker config may be about the object store (AWS_REGION)."""
    pod = {"name": POD_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    return [*_variables({**spec["container"]["kubernetes"]["env"], **ours}), pod]


def _store_access(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Credentials of the object store for a container in which a part of Ork runs, under names that tasks do not inherit."""
    secret = spec["container"]["kubernetes"]["objects_secret"]
    return {} if secret is None else {"envFrom": [{"prefix": PASSED, "secretRef": {"name": secret}}]}


def _secret_variables(secrets: Mapping[str, str]) -> list[dict[str, Any]]:
    """Variables that the kubelet fills from Secrets: `secret/key`."""
    made = []
    for name, entry in sorted(secrets.items()):
        secret, _, key = entry.partition("/")
        made.append({"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}})
    return made


def _literal(text: str) -> str:
    """The text as a value in which Kubernetes replaces nothing: it would replace $(NAME)."""
    return text.replace("$", "$$")


def _needed(image: str | None, spec: Mapping[str, Any]) -> str:
    if image is None:
        shown = spec["container"]["image"]
        raise DocumentError(
            f"the image {shown} has no Ork in it, and no image is known that brings it: set `kubernetes: {{image: …}}` in ork.yaml"
        )
    return image


def _hash(content: Any) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:_NAME_HASH]
