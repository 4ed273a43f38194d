"""What Ork's image does in a pod beside an image without Ork: `ork-worker bring`, `begin` and `upload`.

`bring FOLDER` copies the worker into a volume, for an image with python3. For a plain image, `begin FOLDER` wins the attempt's gate and
writes its input and its files into a volume; the pod runs the program only if it ends with exit code 0. `upload FOLDER`, a sidecar that starts before it,
waits until the program has ended, of which the kubelet informs it by SIGTERM, and stores the output. A signal that comes before it
listens would be lost, so `begin` waits for it.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import sys
import time

from ork.errors import DocumentError, ObjectsError
from ork.model.value_reference import FILES_IN_IMAGE, is_json_file
from ork.objects.documents import token_hash, utc_text
from ork.objects.references import needs_files
from ork.objects.regular import open_regular
from ork.objects.worker_package import worker_files
from ork.worker.supervise.claim import read_spec
from ork.worker.supervise.stand_in import StandIn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FAILED, REFUSED, LOST_GATE = 1, 3, 4  # exit codes
# In the folder that both containers share: the input, the files that arguments, variables and the input name, two marks.
INPUT_NAME, INPUTS_NAME, WON_NAME, LISTENING_NAME = "input", "inputs", "won", "listening"
PATIENCE_SECONDS = 600.0  # for an object store that is away; the pod's grace is as long
GATE_SECONDS = 60.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.2, 5.0
_FOR_ALL, _FOLDER_FOR_ALL = 0o644, 0o755
_CHUNK = 4 << 20
_SECRET = "ORK_SECRET_"
_ENDS = (_signal.SIGTERM, _signal.SIGINT)


class _PodAttempt:
    """The attempt of this pod: what a `StandIn` needs to know of it."""

    def __init__(self, name: str, secret: str) -> None:
        self.key = name
        self.token_hash = secret


def main(arguments: list[str]) -> int:
    """Perform a command of this module. Returns the exit code."""
    command, *rest = arguments
    if not rest:
        return _say(f"usage: ork-worker {command} FOLDER", 2)
    try:
        if command == "bring":
            return bring(rest[0])
        if command == "begin":
            return begin(rest[0])
        return upload(rest[0], rest[1])
    except ObjectsError as error:
        return _say(error.message, REFUSED)


def bring(folder: str) -> int:
    """Copy the worker below `folder`, readable by any user."""
    for path, data in worker_files().items():
        target = f"{folder}/ork/{path}"
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(data)
        os.chmod(target, _FOR_ALL)
    return 0


def begin(folder: str) -> int:
    """Win the gate, and write the program's input into the folder. LOST_GATE if another pod has it."""
    documents, spec = _opened()
    facts = {"pod": os.environ.get("ORK_POD", "")}
    if spec["from_file"] and not _is_listening(folder):
        return _say("the container that uploads the output did not start", REFUSED)
    try:
        secrets = {name: value for name, value in os.environ.items() if name.startswith(_SECRET)}
        if spec["to_file"]:
            _put_input(documents, spec, secrets, f"{folder}/{INPUT_NAME}")
        if needs_files(spec):
            _put_files(documents, spec, secrets, f"{folder}/{INPUTS_NAME}")
    except DocumentError as error:
        if _patiently(lambda: documents.win_gate(facts), GATE_SECONDS):
            failure = {"kind": "input", "message": error.message, "detail": None}
            ending = {"state": "failed", "exit_code": None, "failure": failure, "output": None}
            _patiently(lambda: documents.finish(ending, utc_text(time.time_ns())), GATE_SECONDS)
        return _say(error.message, FAILED)
    if not _patiently(lambda: documents.win_gate(facts), GATE_SECONDS):
        return _say("another pod runs this attempt", LOST_GATE)
    _touch(f"{folder}/{WON_NAME}")
    return 0


def _put_input(documents: StandIn, spec: dict[str, Any], secrets: dict[str, str], path: str) -> None:
    data = _patiently(lambda: documents.input(spec, secrets), GATE_SECONDS)
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, _FOR_ALL)


def _put_files(documents: StandIn, spec: dict[str, Any], secrets: dict[str, str], folder: str) -> None:
    """Write the files that the program gets (`as: file`). The folder is its /input."""
    _patiently(lambda: documents.words(spec, secrets), GATE_SECONDS)
    _patiently(lambda: documents.environment(spec, secrets), GATE_SECONDS)
    os.makedirs(folder, mode=_FOLDER_FOR_ALL, exist_ok=True)
    for path, size, source in documents.input_files():
        target = f"{folder}/{path}"
        os.makedirs(os.path.dirname(target), mode=_FOLDER_FOR_ALL, exist_ok=True)
        with open(target, "wb") as file:
            if isinstance(source, bytes):
                file.write(source)
            else:
                _copy(documents, source, size, file)
        os.chmod(target, _FOR_ALL)
    if spec["to_file"] and os.path.dirname(spec["to_file"]) == FILES_IN_IMAGE:
        _touch(f"{folder}/{os.path.basename(spec['to_file'])}")  # it is mounted over this


def _piece(documents: StandIn, reference: str, place: int, most: int) -> Any:
    return _patiently(lambda: documents.read_value(reference, place, most), GATE_SECONDS)


def _copy(documents: StandIn, reference: str, size: int, file: Any) -> None:
    place = 0
    while place < size:
        most = min(_CHUNK, size - place)
        data = _piece(documents, reference, place, most)
        if not data:
            raise DocumentError(f"the value {reference} is no longer in the object store")
        file.write(data)
        place += len(data)


def _is_listening(folder: str) -> bool:
    give_up_at = time.monotonic() + GATE_SECONDS
    while not os.path.exists(f"{folder}/{LISTENING_NAME}"):
        if time.monotonic() > give_up_at:
            return False
        time.sleep(0.05)
    return True


def upload(folder: str, path: str) -> int:
    """Store the output when the program has ended, and leave a note of it in the attempt's status. Nothing in a pod that has not
    won the gate."""
    import signal

    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    _touch(f"{folder}/{LISTENING_NAME}")
    signal.sigwait(_ENDS)
    if not os.path.exists(f"{folder}/{WON_NAME}"):
        return 0
    documents, spec = _opened()
    try:
        left: dict[str, Any] = {"output": _patiently(lambda: _stored(documents, spec, path), PATIENCE_SECONDS)}
    except DocumentError as error:
        left = {"problem": f"{spec['from_file']} cannot be used as output: {error.message}"}
    except OSError as error:
        left = {"problem": _missing(spec["from_file"], error)}
    _patiently(lambda: documents.leave(left), PATIENCE_SECONDS)
    return 0


def _stored(documents: StandIn, spec: dict[str, Any], path: str) -> dict[str, Any]:
    if not is_json_file(spec["from_file"]):
        if not os.path.isdir(path) or os.path.islink(path):
            os.close(open_regular(path))  # a link, or something else: the program could point it at anything
        return documents.store_file(path, spec)
    limit = spec["output_limit"]
    with open(open_regular(path), "rb") as file:  # no link is followed: the program could point it at anything
        data = file.read(limit + 1)
    if len(data) > limit:
        raise DocumentError(f"it has more than the {limit:,} bytes allowed")
    return documents.store_output(data, spec)


def _missing(path: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"it left no output: there is no file {path}"
    return f"{path} cannot be read as output: {error.strerror}"


def _touch(path: str) -> None:
    with open(path, "wb"):
        pass


def _opened() -> tuple[StandIn, dict[str, Any]]:
    attempt, token = os.environ.get("ORK_ATTEMPT_ID", ""), os.environ.pop("ORK_TOKEN", "")
    secret = token_hash(token)
    objects, spec = read_spec(os.environ.get("ORK_OBJECTS", ""), attempt, secret, 0)
    return StandIn(objects, _PodAttempt(attempt, secret)), spec  # type: ignore[arg-type]


def _patiently(act: Callable[[], Any], seconds: float) -> Any:
    """Repeat while the object store is away."""
    pause, give_up_at = _FIRST_PAUSE_SECONDS, time.monotonic() + seconds
    while True:
        try:
            return act()
        except DocumentError:
            raise
        except ObjectsError:
            if time.monotonic() > give_up_at:
                raise
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def _say(why: str, code: int) -> int:
    sys.stderr.write(f"ork-worker: {why}\n")
    return code
