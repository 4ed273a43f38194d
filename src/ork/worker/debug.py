"""One attempt again, in the foreground, for a person to look inside: no gate, no status, nothing is written down.

Started by `ork debug` as `bootstrap.py ork.worker.debug OBJECTS_URL SPEC_KEY MODE` with the token in ORK_TOKEN, in the
interpreter the attempt ran in.
"""

from __future__ import annotations

import os
import sys

from ork.errors import ObjectsError
from ork.objects.documents import open_signed, token_hash
from ork.objects.opening import open_objects
from ork.worker.build.preparation import Preparation
from ork.worker.call.environment import Bindings
from ork.worker.call.loading import LoadError
from ork.worker.data.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Any

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.worker.call.arguments import Arguments

TRACE = "trace"
_FAILED = 1


def start(objects_url: str, attempt: str, mode: str, moved: str | None = None) -> int:
    """Runs the attempt's function or program and gives its exit code; with MODE `trace` step by step.

    `moved` once this is the interpreter of the task's own environment.
    """
    objects = open_objects(objects_url)
    try:
        spec = open_signed(objects.read_spec(attempt) or b"", token_hash(os.environ["ORK_TOKEN"]))
    except ObjectsError as error:
        return _say(f"cannot read the spec of {attempt}: {error.message}")
    spec.setdefault("paths", [])  # older specs name none
    preparation = Preparation(objects, spec)
    ending = preparation.look()
    if ending is not None or not preparation.is_ready():
        return _say("what the task runs in is no longer there: run it once more, then debug that attempt")
    preparation.settle()
    if moved is None and spec.get("python") is not None:
        _move_to(spec["python"])
    del os.environ["ORK_TOKEN"]
    if spec["kind"] in ("python", "custom"):
        return _Function(objects, spec, is_traced=mode == TRACE).run()
    return _run_program(objects, spec)


def _move_to(python: str) -> None:
    sys.stderr.flush()
    os.execv(python, [python, "-S", "-E", *sys.argv, "moved"])


class _Function:
    def __init__(self, objects: AttemptDocuments, spec: dict[str, Any], *, is_traced: bool) -> None:
        self._objects = objects
        self._spec = spec
        self._is_traced = is_traced

    def run(self) -> int:
        from bdb import BdbQuit

        try:
            return self._call()
        except (LoadError, InputError, ObjectsError) as error:
            return _say(str(error))
        except BdbQuit:
            return _say("left the debugger")
        except SystemExit as stop:
            return _say(f"the function ended the process: exit {stop.code}")
        except BaseException as error:
            _look_inside(error, self._spec["root"], self._spec.get("paths") or ())
            return _FAILED

    def _call(self) -> int:
        from ork.worker.call.invoke import call, prepared
        from ork.worker.call.results import result_text
        from ork.worker.data.errors import ResultError

        function, arguments = prepared(self._objects, self._spec)
        shown = ", ".join(f"{name}={text}" for name, text in arguments.shown.items())
        sys.stderr.write(f"calling {getattr(function, '__name__', 'it')}({shown})\n")
        try:
            result = (_traced if self._is_traced else call)(function, *_given(arguments))
            text = result_text(result, self._spec["output_limit"])
        except ResultError as error:
            return _say(str(error))
        sys.stdout.write((text or "null") + "\n")
        sys.stdout.flush()
        return 0


def _given(arguments: Arguments) -> tuple[list[Any], dict[str, Any]]:
    return arguments.positional, arguments.named


def _traced(function: Callable[..., Any], positional: list[Any], named: dict[str, Any]) -> Any:
    """Stops at the function's first line, also where it is reached through an event loop."""
    from pdb import Pdb

    from ork.worker.call.invoke import call

    debugger = Pdb()
    # Read by pdb where it stops first, which is in `call`: `function` is the name it has there.
    debugger.rcLines += ["tbreak function", "continue"]
    return debugger.runcall(call, function, positional, named)


def _look_inside(error: BaseException, root: str, paths: Sequence[str]) -> None:
    from pdb import Pdb

    from ork.worker.call.failure import frames_below, print_traceback

    error.__traceback__ = _without_ours(error.__traceback__)
    print_traceback(error)
    sys.stdout.flush()
    sys.stderr.flush()
    debugger = Pdb()
    debugger.reset()
    # It stops where the exception was raised, perhaps deep in a library: go up to the project's own code.
    above = frames_below(error, root, paths)
    debugger.rcLines += [f"up {above}"] if above else []
    debugger.interaction(None, error.__traceback__)


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    """The frames from the user's first one on, without those of the debugger and of Ork."""
    found = trace
    while found is not None and found.tb_frame.f_code.co_filename.endswith(
        ("/bdb.py", "/ork/worker/debug.py", "/ork/worker/call/invoke.py")
    ):
        found = found.tb_next
    return found or trace


def _run_program(objects: AttemptDocuments, spec: dict[str, Any]) -> int:
    """The program with its input on stdin and in a file, its output shown."""
    from subprocess import run
    from tempfile import TemporaryDirectory

    from ork.worker.call.environment import task_environment
    from ork.worker.supervise.command import input_text
    from ork.worker.supervise.process import exit_text
    from ork.worker.supervise.programs import ProgramError, add_import_paths, find_program

    inherited = dict(os.environ)
    bindings = Bindings(objects, spec["output_limit"], inherited, spec)
    with TemporaryDirectory(prefix="ork-debug-") as scratch:
        try:
            env = task_environment(spec, inherited, bindings)
            env |= {"ORK_INPUT_FILE": scratch + "/input.json", "ORK_OUTPUT_FILE": scratch + "/output.json"}
            path = env.get("PATH", os.defpath)
            paths = spec["paths"]
            bindings.folder = scratch + "/inputs"
            words = bindings.words(spec["argv"])
            if spec.get("from_file") is not None:
                env["ORK_OUTPUT_DIR"] = scratch
            argv = find_program(words, spec["root"], spec["script_dir"], path, spec.get("python"), paths)
            add_import_paths(env, words[0], paths)
            with open(env["ORK_INPUT_FILE"], "wb") as file:
                file.write(input_text(spec, bindings))
        except (ProgramError, InputError, ObjectsError) as error:
            return _say(str(error))
        with open(env["ORK_INPUT_FILE"], "rb") as stdin:
            try:
                done = run(argv, cwd=spec["root"], env=env, stdin=stdin, check=False)
            except OSError as error:
                return _say(f"cannot run {argv[0]}: {error.strerror}")
        if os.path.isfile(env["ORK_OUTPUT_FILE"]):
            sys.stderr.write("wrote to $ORK_OUTPUT_FILE:\n")
            with open(env["ORK_OUTPUT_FILE"], encoding="utf-8", errors="replace") as output:
                sys.stdout.write(output.read().rstrip("\n") + "\n")
    sys.stdout.flush()
    if done.returncode:
        _say(exit_text(done.returncode))
    return _FAILED if done.returncode else 0


def _say(text: str) -> int:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
    return _FAILED
