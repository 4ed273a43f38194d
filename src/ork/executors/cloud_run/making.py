"""Jobs and executions as requests to Cloud Run. Pure.

Overrides of an execution carry arguments, variables, the number of tasks and a timeout. Everything else belongs to the
Job, so Jobs with the same content share one name: the hash of the content.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from posixpath import dirname
from typing import Any

from ork.errors import DocumentError
from ork.executors import worker_variables as variables
from ork.executors.executor import GroupOrder
from ork.model.cloud_run import DEFAULT_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS, size_for
from ork.model.digest import sha256
from ork.model.record import Record

PREFIX = "ork-"
LABEL = "ork-installation"
ATTEMPT_ANNOTATION = "ork.dev/attempt"
WORKER_VARIABLE = "ORK_WORKER"
WORKER_FOLDER = "/ork-worker"
# Where the platform ends an execution although the worker should have ended its task at the timeout.
TIMEOUT_MARGIN_SECONDS = 60.0
_NAME_HASH = 24
# Checks the worker's archive against the hash in its name, unpacks it and becomes the worker. In the Job, not in the bucket.
BRING_WORKER = """\
import hashlib, io, sys, tempfile, zipfile
from os import environ, execv
path = environ.pop("ORK_WORKER")
data = open(path, "rb").read()
if hashlib.sha256(data).hexdigest() + ".zip" != path.rpartition("/")[2]:
    sys.exit("ork: " + path + " was changed: its hash is another one")
home = tempfile.mkdtemp(prefix="ork-worker-")
zipfile.ZipFile(io.BytesIO(data)).extractall(home)
command = [sys.executable, "-S", "-E", home + "/ork/worker/bootstrap.py"]
execv(sys.executable, [*command, environ["ORK_OBJECTS"], environ.get("ORK_ATTEMPT_ID", "")])
"""


class BucketVolume(Record):
    """The bucket of the object store, which Cloud Run can mount. `prefix` is empty or ends with `/`."""

    bucket: str
    prefix: str = ""


class JobPlan(Record):
    """A Job that an attempt needs. `content` has the fields of `google.cloud.run_v2.Job`."""

    name: str
    content: dict[str, Any]


def is_plain(spec: Mapping[str, Any]) -> bool:
    """True if nothing of ours runs in the attempt's container."""
    return spec["kind"] in ("container", "cloud_run_job")


def brings_worker(spec: Mapping[str, Any], volume: BucketVolume | None) -> bool:
    """True if the worker comes from the bucket. Images of code locations have it, and so must others without a bucket."""
    return volume is not None and not spec["container"]["cloud_run"]["has_ork"]


def worker_job(
    spec: Mapping[str, Any], image: str, installation: str, volume: BucketVolume | None, *, parallelism: int = 1
) -> JobPlan:
    """The Job of all attempts with this image and worker config, in which a worker runs."""
    wanted = spec["container"]
    container: dict[str, Any] = {"image": image, "env": _secret_variables(wanted["cloud_run"]["secrets"])}
    volumes: list[dict[str, Any]] = []
    if brings_worker(spec, volume):
        assert volume is not None
        container["command"] = ["python3", "-S", "-E", "-c", BRING_WORKER]
        container["volume_mounts"] = [{"name": "worker", "mount_path": WORKER_FOLDER}]
        volumes = [_bucket_volume("worker", volume, "workers", read_only=True)]
    else:
        container["command"] = ["ork-worker"]
    content = _job(wanted, container, volumes, installation, DEFAULT_TIMEOUT_SECONDS, parallelism)
    return JobPlan(PREFIX + _hash(content), content)


def plain_job(
    spec: Mapping[str, Any],
    image: str,
    installation: str,
    volume: BucketVolume | None,
    env: Sequence[tuple[str, str]],
    secrets: Mapping[str, str],
) -> JobPlan:
    """The Job of one attempt of an image without a worker; its volumes are narrowed to this attempt's files.

    `env` has the values of variables, `secrets` the secrets that variables refer to."""
    wanted, attempt = spec["container"], spec["attempt"]
    container: dict[str, Any] = {
        "image": image,
        "env": [*({"name": name, "value": value} for name, value in env), *_secret_variables(secrets)],
    }
    if spec["argv"]:
        container["args"] = spec["argv"]
    folders = plain_folders(spec)
    if folders and volume is None:
        raise DocumentError(
            "input and output files of an image on Cloud Run need an object store in a bucket: set ORK_OBJECTS to gs://…"
        )
    volumes, mounts = [], []
    for number, (folder, is_written) in enumerate(folders.items()):
        assert volume is not None
        below = f"{attempt_files(attempt)}/{number}"
        volumes.append(_bucket_volume(f"files-{number}", volume, below, read_only=not is_written))
        mounts.append({"name": f"files-{number}", "mount_path": folder})
    if mounts:
        container["volume_mounts"] = mounts
    timeout = spec["timeout"] or DEFAULT_TIMEOUT_SECONDS
    content = _job(wanted, container, volumes, installation, timeout, 1)
    content["annotations"] = {ATTEMPT_ANNOTATION: attempt}
    return JobPlan(plain_job_name(attempt, installation), content)


def plain_job_name(attempt: str, installation: str) -> str:
    """The same for the same attempt, whichever scheduler asks."""
    return f"{PREFIX}a-{_hash([installation, attempt])}"


def plain_folders(spec: Mapping[str, Any]) -> dict[str, bool]:
    """The folders of the input and output file, each with whether the program writes there. DocumentError for `/`."""
    folders: dict[str, bool] = {}
    for path, is_written in ((spec.get("to_file"), False), (spec.get("from_file"), True)):
        if path:
            folder = dirname(path)
            if folder == "/":
                raise DocumentError(f"{path} must be in a folder: a bucket cannot be mounted at /")
            folders[folder] = folders.get(folder, False) or is_written
    return folders


def attempt_files(attempt: str) -> str:
    """Where the files of an attempt's plain image are, below the object store's prefix."""
    run, task, index, number = attempt.split("/")
    return f"runs/{run}/{task}.{index}.{number}.files"


def plain_file_key(spec: Mapping[str, Any], path: str) -> str:
    """The object that is this file in the container."""
    number = list(plain_folders(spec)).index(dirname(path))
    return f"{attempt_files(spec['attempt'])}/{number}/{path.rpartition('/')[2]}"


def worker_variables(spec: Mapping[str, Any], objects_url: str, token: str, archive: str | None) -> dict[str, str]:
    """The variables of one execution. `archive` is the hash of the worker's archive, if it is brought in."""
    env = variables.attempt_variables(spec["attempt"], objects_url, token)
    return env if archive is None else {**env, WORKER_VARIABLE: f"{WORKER_FOLDER}/{archive}.zip"}


def group_variables(group: GroupOrder, objects_url: str, archive: str | None) -> dict[str, str]:
    """The variables of the execution that starts a group."""
    env = variables.group_variables(group, objects_url)
    return env if archive is None else {**env, WORKER_VARIABLE: f"{WORKER_FOLDER}/{archive}.zip"}


def overrides(
    env: Mapping[str, str], *, timeout: float, args: Sequence[str] = (), task_count: int | None = None
) -> dict[str, Any]:
    """What one execution has for itself. The timeout is always sent: the platform's default is ten minutes."""
    container: dict[str, Any] = {"env": [{"name": name, "value": value} for name, value in env.items()]}
    if args:
        container["args"] = list(args)
    made: dict[str, Any] = {"container_overrides": [container], "timeout": {"seconds": _seconds(timeout)}}
    return made if task_count is None else {**made, "task_count": task_count}


def execution_timeout(spec: Mapping[str, Any]) -> float:
    """Of an execution whose worker ends its task at the task's own timeout."""
    if spec["timeout"] is None:
        return DEFAULT_TIMEOUT_SECONDS
    return float(spec["timeout"]) + float(spec["stop_grace_seconds"]) + TIMEOUT_MARGIN_SECONDS


def _job(
    wanted: Mapping[str, Any],
    container: dict[str, Any],
    volumes: list[dict[str, Any]],
    installation: str,
    timeout: float,
    parallelism: int,
) -> dict[str, Any]:
    place = wanted["cloud_run"]
    cpu, memory = size_for(wanted["cpu"], wanted["memory"])
    limits = {"cpu": str(cpu), "memory": f"{memory >> 20}Mi"}
    task: dict[str, Any] = {
        "containers": [container],
        "volumes": volumes,
        "max_retries": 0,
        "timeout": {"seconds": _seconds(timeout)},
    }
    if place["gpu"] is not None:
        limits["nvidia.com/gpu"] = "1"
        task["node_selector"] = {"accelerator": place["gpu"]}
        task["gpu_zonal_redundancy_disabled"] = True
    container["resources"] = {"limits": limits}
    if place["service_account"] is not None:
        task["service_account"] = place["service_account"]
    if place["vpc_connector"] is not None:
        task["vpc_access"] = {"connector": place["vpc_connector"]}
    elif place["network"] is not None or place["subnet"] is not None:
        interface = {"network": place["network"] or "", "subnetwork": place["subnet"] or ""}
        task["vpc_access"] = {"network_interfaces": [interface]}
    return {
        "labels": {LABEL: installation},
        "template": {"parallelism": parallelism, "task_count": parallelism, "template": task},
    }


def _secret_variables(secrets: Mapping[str, str]) -> list[dict[str, Any]]:
    """Variables that the platform fills from Secret Manager: `projects/P/secrets/S/versions/V`."""
    made = []
    for name, reference in sorted(secrets.items()):
        secret, _, version = reference.partition("/versions/")
        source = {"secret_key_ref": {"secret": secret, "version": version or "latest"}}
        made.append({"name": name, "value_source": source})
    return made


def _bucket_volume(name: str, volume: BucketVolume, below: str, *, read_only: bool) -> dict[str, Any]:
    options = [f"only-dir={volume.prefix}{below}", "implicit-dirs"]
    return {"name": name, "gcs": {"bucket": volume.bucket, "read_only": read_only, "mount_options": options}}


def _seconds(timeout: float) -> int:
    return int(min(max(timeout, 1.0), MAX_TIMEOUT_SECONDS))


def _hash(content: Any) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:_NAME_HASH]
