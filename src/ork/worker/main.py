"""Entry point of a worker that is started for one attempt: claim it and run the task under a shim."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import sys

from ork.errors import ObjectsError
from ork.objects.documents import Signer, token_hash
from ork.objects.opening import of_spec_url
from ork.worker.supervise.claim import process_entries, read_spec, win_gate
from ork.worker.system import processes

_REFUSED = 3
_IN_PODS = ("bring", "begin", "upload")  # for pods with an image without Ork
# How platforms tell a worker its position in a launch group: Cloud Run, and indexed Jobs of Kubernetes.
_POSITIONS = ("CLOUD_RUN_TASK_INDEX", "JOB_COMPLETION_INDEX")


def main() -> None:
    """`ork-worker SPEC_URL`, e.g. file:/data/objects/runs/7f3k…/load.0.1.spec.json; the token is in ORK_TOKEN. Without an argument
    the object store and the attempt are in ORK_OBJECTS and ORK_ATTEMPT_ID: platforms that start it pass variables."""
    if len(sys.argv) > 1 and sys.argv[1] in _IN_PODS:
        from ork.worker.pod import main as perform_in_pod

        sys.exit(perform_in_pod(sys.argv[1:]))
    if len(sys.argv) == 1 and os.environ.get("ORK_OBJECTS"):
        sys.exit(perform(os.environ["ORK_OBJECTS"], os.environ.get("ORK_ATTEMPT_ID", "")))
    if len(sys.argv) != 2 or "/runs/" not in sys.argv[1]:
        sys.stderr.write("usage: ork-worker SPEC_URL   (the token in the environment variable ORK_TOKEN)\n")
        sys.exit(2)
    sys.exit(perform(*of_spec_url(sys.argv[1])))


def perform(objects_url: str, attempt: str, position: str = "0") -> int:
    """Run the attempt, unless another worker holds its gate. Only the status document contains how the task ended; the exit
    code is about the worker: 0 it did its part, 1 it failed, 3 it was given nothing that it may run."""
    if not attempt:  # the variables name a launch group, and the platform this worker's position in it
        attempt = _group_member()
    token = os.environ.pop("ORK_TOKEN", None)
    if token is None:
        return _refuse("ORK_TOKEN is not set: this worker cannot prove that the task is meant for it")
    secret = token_hash(token)
    try:
        objects, spec = read_spec(objects_url, attempt, secret, int(position))
        # A stop that comes between winning the gate and being able to report it must not be lost.
        _signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGTERM,))
        process = process_entries(processes.own_process() | _platform())
        signer = Signer(secret)
        if not win_gate(objects, attempt, signer, process):
            return 0
    except ObjectsError as error:
        return _refuse(error.message)
    from ork.worker.supervise.shim import Shim

    return 0 if Shim(objects, spec, signer).run() else 1


def _group_member() -> str:
    """The attempt at this worker's position in its launch group. Its token follows from the group's key, which goes no further."""
    from ork.objects.documents import token_maker
    from ork.objects.group_members import members_of

    key, text = os.environ.pop("ORK_GROUP_KEY", ""), os.environ.pop("ORK_ATTEMPTS", "")
    try:
        position = next(os.environ[name] for name in _POSITIONS if name in os.environ)
        attempt = members_of(text)[int(position)]
        os.environ["ORK_TOKEN"] = token_maker(bytes.fromhex(key))(attempt)
    except (ValueError, StopIteration, IndexError):
        sys.exit(_refuse("neither an attempt nor a launch group is named"))
    os.environ["ORK_ATTEMPT_ID"] = attempt
    return attempt


def _platform() -> dict[str, str]:
    """The execution on Cloud Run or the pod that this process belongs to, by which schedulers find it."""
    job, execution, pod = (os.environ.get(name) for name in ("CLOUD_RUN_JOB", "CLOUD_RUN_EXECUTION", "ORK_POD"))
    if job and execution:
        return {"job": job, "execution": execution}
    return {"pod": pod} if pod else {}


def _refuse(why: str) -> int:
    sys.stderr.write(f"ork-worker: {why}\n")
    return _REFUSED
