"""A task that is a Python function, seen from inside the child: load it, call it, answer with what came of it."""

from __future__ import annotations

import os
import sys
import time

from ork.errors import ObjectsError
from ork.objects.json_text import dumps, strict_json
from ork.objects.opening import open_values
from ork.worker import packages
from ork.worker.ahead import WORTH_SECONDS, imported
from ork.worker.arguments import bind_arguments
from ork.worker.bound import Bindings, InputError, param_bounds
from ork.worker.environment import additions, hidden_names, inherited, task_id
from ork.worker.hidden import import_before_hidden
from ork.worker.leaving import finish_as_the_interpreter_would, flush_streams
from ork.worker.loading import LoadError, load_function
from ork.worker.logging_setup import LoggingSetUp
from ork.worker.order import receive
from ork.worker.outputs import store_output
from ork.worker.process import times_waited
from ork.worker.results import ResultError, result_text
from ork.worker.status import storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.sdk.context import Context
    from ork.worker.ahead import Ahead
    from ork.worker.arguments import Arguments
    from ork.worker.mark import Mark

_has_streams = _has_packages = False
_objects: dict[tuple[str, str], AttemptDocuments] = {}
_GENERATOR = 0x20
_ASYNC_GENERATOR = 0x200


def run_function(objects: AttemptDocuments, spec: dict[str, Any], answer: int) -> NoReturn:
    """Ends the process. Whatever the user's code does, there is one reply or, if it ended the process itself, none."""
    _perform(Call(objects, spec, inherited()), answer)


def _perform(call: Call, answer: int, waited: int | None = None) -> NoReturn:
    """`waited`: how often this process had waited when it was given its order, if that matters."""
    call.perform()
    finish_as_the_interpreter_would()
    flush_streams()
    call.is_swift = waited is not None and times_waited() == waited
    call.reply(answer)
    os._exit(call.exit_code)


def wait_and_call(orders: int, answer: int, mark: Mark, ahead: Ahead | None) -> NoReturn:
    """In a process forked before its task is known: one order, one call. Without an order it ends quietly."""
    is_quiet = ahead is None or _import_ahead(ahead)
    order = receive(orders)
    if order is None:
        os._exit(0)
    os.close(orders)
    waited, spec = times_waited(), order["spec"]
    mark.write(spec["attempt"].encode())
    objects = objects_at(order["objects"], spec["durability"])
    _go_where_it_belongs(objects, spec, answer)
    call = Call(objects, spec, inherited())
    call.is_quiet = is_quiet
    _perform(call, answer, waited)


def call_here(objects: AttemptDocuments, spec: dict[str, Any], answer: int) -> NoReturn:
    """In a child of the shim, which is as the task's own interpreter would be, or becomes that."""
    use_streams()
    _go_where_it_belongs(objects, spec, answer)
    run_function(objects, spec, answer)


def _go_where_it_belongs(objects: AttemptDocuments, spec: dict[str, Any], answer: int) -> None:
    python = spec.get("python")
    if python is not None:
        from ork.worker.elsewhere import become

        become(python, objects, spec, answer)


def objects_at(url: str, durability: str) -> AttemptDocuments:
    """The same for whoever asks for the same, also after a fork."""
    if (url, durability) not in _objects:
        _objects[url, durability] = open_values(url, durability)
    return _objects[url, durability]


def _import_ahead(ahead: Ahead) -> bool:
    """In the project's folder, and with its import path; whether that left the process quiet."""
    from ork.worker.ahead import import_ahead, is_quiet

    try:
        os.chdir(ahead.root)
    except OSError:
        return True
    use_packages(ahead.root, ahead.paths)
    import_ahead(ahead.names)
    return is_quiet()


class Call:
    """One call of a task's function. `environ` is the environment that the process was started with."""

    _context: Context | None = None
    _shown_inputs: dict[str, str] = {}  # noqa: RUF012 - replaced, never added to
    _failure: dict[str, Any] | None = None
    _output: dict[str, Any] | None = None
    _jobs: list[dict[str, Any]] | None = None
    _imports: dict[str, Any] | None = None
    is_silent = False
    has_exited = False
    is_quiet = True
    is_swift = False  # it never waited for anything
    exit_code = 0

    def __init__(self, objects: AttemptDocuments, spec: dict[str, Any], environ: dict[str, str]) -> None:
        self._environ = environ
        self._objects = objects
        self._spec = spec

    @property
    def has_failed(self) -> bool:
        return self._failure is not None

    def perform(self) -> None:
        try:
            self._run()
        except SystemExit as stop:
            self._exited(stop)
        except BaseException as error:
            self._raised(error)

    def _run(self) -> None:
        bindings = Bindings(self._objects, self._spec["output_limit"], self._environ)
        try:
            self.settle(bindings)
            function, arguments = self.prepare(bindings)
        except LoadError as error:
            return self._fail("start", str(error))
        except (InputError, ObjectsError) as error:
            return self._fail("input", str(error))
        self._shown_inputs = arguments.shown
        try:
            self._keep(call(function, arguments.positional, arguments.named))
        except ResultError as error:
            self._fail("output", str(error))

    def _raised(self, error: BaseException) -> None:
        from ork.worker.failure import describe, print_traceback

        print_traceback(error)
        self.exit_code = 1
        self._failure = describe(error, self._spec["root"], self._shown_inputs, self._spec["paths"])

    def _exited(self, stop: SystemExit) -> None:
        """`sys.exit()` ends the process as it says, with no output; the shim puts the exit code into words."""
        self.has_exited = True
        if isinstance(stop.code, int):
            self.exit_code = stop.code & 0xFF
        elif stop.code is not None:
            sys.stderr.write(f"{stop.code}\n")
            self.exit_code = 1
        self.is_silent = self.exit_code != 0

    def outcome(self) -> dict[str, Any]:
        """What came of it, unless it `is_silent`: then the exit code says all. Without what there is nothing to say about."""
        outcome: dict[str, Any] = {"exit_code": self.exit_code, "output": self._output}
        if self._failure is not None:
            outcome["failure"] = self._failure
        if self._jobs is not None:
            outcome["jobs"] = self._jobs
        if self._context is not None:
            outcome["metrics"] = self._context.metrics.as_dict() or None
        return outcome

    def reply(self, answer: int) -> None:
        """A line of JSON."""
        if self.is_silent:
            return
        document = {**self.outcome(), "is_quiet": self.is_quiet}
        if self.is_swift:
            document["is_swift"] = True
        if self._imports is not None:
            document["imports"] = self._imports
        rest = memoryview(dumps(document).encode() + b"\n")
        while rest:
            rest = rest[os.write(answer, rest) :]

    def prepare(self, bindings: Bindings) -> tuple[Callable[..., Any], Arguments]:
        spec = self._spec
        if spec["kind"] == "custom":
            from ork.worker.custom import prepare_custom

            return prepare_custom(spec, bindings, self._make_context)
        function = self.load()
        return function, bind_arguments(function, spec, bindings, self._make_context)

    def settle(self, bindings: Bindings) -> None:
        settle_in(self._spec, bindings)

    def load(self) -> Callable[..., Any]:
        spec, known, begun = self._spec, len(sys.modules), time.monotonic()
        function = load_function(spec["root"], spec["file"], spec["module"], spec["function"], spec["paths"])
        if time.monotonic() - begun > WORTH_SECONDS and not spec["env"]:
            self._imports = imported((spec["root"], *spec["paths"]), known)
        return function

    def _keep(self, result: Any) -> None:
        """What was returned is the output, or the jobs that will have it."""
        handover = sys.modules.get("ork.sdk.defer")
        if handover is None or not isinstance(result, handover.Deferred):
            self._store(result_text(result, self._spec["output_limit"]))
            return
        text = result_text(result.jobs, handover.MOST_BYTES)
        self._jobs = strict_json((text or "").encode(), max_size=handover.MOST_BYTES)

    def _make_context(self) -> Context:
        from ork.sdk.context import Context

        spec = self._spec
        self._context = Context(
            task_id=task_id(spec),
            run_id=spec["run_id"],
            task_name=spec["task"],
            workflow_name=spec["workflow"],
            attempt=spec["number"],
            parallel_index=spec.get("parallel_index", spec["index"]),
            parallel_count=spec["parallel_count"],
            scheduled_for=spec["scheduled_for"],
            params=self._params(),
            upstream_states=spec.get("upstream_states"),
        )
        return self._context

    def _params(self) -> dict[str, Any]:
        spec = self._spec
        if "sealed_params" not in spec:
            return spec["params"]  # type: ignore[no-any-return]
        bindings = Bindings(self._objects, spec["output_limit"], self._environ)
        return {name: bindings.value(bound) for name, bound in param_bounds(spec).items()}

    def _store(self, text: str | None) -> None:
        if self._spec.get("output_type") is not None:
            from ork.worker.declared import wrong_output

            wrong = wrong_output(text, self._spec)
            if wrong is not None:
                self._fail("output", wrong["message"], wrong["detail"])
                return
        if text is None:
            return
        self._output = store_output(self._objects, self._spec["attempt"], text, self._spec["inline_limit"])
        if self._output is None:
            self._fail("output", "the output could not be stored: the disk is full")

    def _fail(self, kind: str, message: str, detail: dict[str, str] | None = None) -> None:
        sys.stderr.write(message + "\n")
        self.exit_code = 1
        self._failure = {"kind": kind, "message": storable(message), "detail": detail}


def prepared(objects: AttemptDocuments, spec: dict[str, Any]) -> tuple[Callable[..., Any], Arguments]:
    """The task's function and what it is given; the process has become the user's."""
    bindings = Bindings(objects, spec["output_limit"], dict(os.environ))
    settle_in(spec, bindings)
    return Call(objects, spec, bindings.environ).prepare(bindings)


def settle_in(spec: dict[str, Any], bindings: Bindings) -> None:
    """The process becomes the user's: folder, environment, packages, import path, standard streams."""
    enter(spec, bindings)
    use_streams()
    use_packages(spec["root"], spec["paths"])


def enter(spec: dict[str, Any], bindings: Bindings) -> None:
    """The task's folder and environment, in a process whose environment is as it came."""
    added = additions(spec, bindings.environ, bindings)
    for name in hidden_names(spec, bindings.environ):
        if name not in added:
            os.environ.pop(name, None)
    for name, value in added.items():
        os.environ[name] = value
    enter_folder(spec["root"])


def enter_folder(root: str) -> None:
    try:
        os.chdir(root)
    except OSError as error:
        raise LoadError(f"cannot work in {root}: {error.strerror}") from None


def call(function: Callable[..., Any], positional: list[Any], named: dict[str, Any]) -> Any:
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    if flags & (_GENERATOR | _ASYNC_GENERATOR):
        raise ResultError("the function is a generator: return a list instead of yielding")
    result = function(*positional, **named)
    return awaited(result) if hasattr(result, "__await__") else result


def awaited(result: Any) -> Any:
    import asyncio

    async def wait() -> Any:
        return await result

    return asyncio.run(wait())


def use_streams() -> None:
    """Text reaches the log line by line, and no character can make printing fail. Done once."""
    global _has_streams
    if _has_streams:
        return
    _has_streams = True
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        # New ones: those of the interpreter may have been made for another file than is there now.
        stream: Any = open(  # noqa: SIM115 - stays open as long as the process lives
            descriptor, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
        )
        stream.buffer.raw.name = f"<{name}>"
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def use_packages(root: str, paths: Sequence[str] = ()) -> None:
    """Import from what a plain start of this interpreter has, after the root and the project's `paths`. Done once."""
    global _has_packages
    if _has_packages:
        return
    _has_packages = True
    packages.use_packages()
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    import_before_hidden(root, paths)
    extra = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:0] = [root, *paths, *extra]
    sys.argv = [""]
    # `multiprocessing` would load the main file again in its children; there is none to load.
    sys.modules["__main__"].__dict__.pop("__file__", None)
    sys.meta_path.insert(0, LoggingSetUp())
