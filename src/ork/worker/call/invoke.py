"""One call of a task's function: set the environment, load, bind, call, encode. The caller decides where the outcome
goes."""

from __future__ import annotations

import os
import sys
import time

from ork.errors import ObjectsError
from ork.objects.json_text import dumps, strict_json
from ork.worker.call.arguments import bind_arguments
from ork.worker.call.environment import Bindings, param_bounds, remove_inputs, task_id
from ork.worker.call.loading import LoadError, load_function
from ork.worker.call.results import LateValues, result_text, storable, store_output
from ork.worker.call.seen_imports import WORTH_MODULES, WORTH_SECONDS, seen_imports
from ork.worker.call.surroundings import settle_in
from ork.worker.data.errors import InputError, ResultError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.sdk.context import Context
    from ork.worker.call.arguments import Arguments

_GENERATOR = 0x20
_ASYNC_GENERATOR = 0x200


class Call:
    """One call of a task's function. `environ` is the environment that the process was started with."""

    _context: Context | None = None
    _shown_inputs: dict[str, str] = {}  # noqa: RUF012 - replaced, never added to
    _failure: dict[str, Any] | None = None
    _output: dict[str, Any] | None = None
    _jobs: list[dict[str, Any]] | None = None
    _load_seconds = 0.0
    is_silent = False
    has_exited = False
    is_swift = False  # it never waited
    exit_code = 0

    def __init__(self, objects: AttemptDocuments, spec: dict[str, Any], environ: dict[str, str]) -> None:
        self._environ = environ
        self._objects = objects
        self._spec = spec
        self._known_modules = len(sys.modules)

    def perform(self) -> None:
        try:
            prepared = self._prepared()
            if prepared is not None:
                function, arguments = prepared
                self._shown_inputs = arguments.shown
                self._keep(call(function, arguments.positional, arguments.named), function)
        except ResultError as error:
            self._fail("output", str(error))
        except SystemExit as stop:
            self._exited(stop)
        except BaseException as error:
            self._raised(error)
        finally:
            if "ork.worker.data.stored" in sys.modules:
                remove_inputs(self._objects, self._spec["attempt"])

    def _prepared(self) -> tuple[Callable[..., Any], Arguments] | None:
        """The function and its arguments; None if preparing failed."""
        bindings = Bindings(self._objects, self._spec["output_limit"], self._environ, self._spec)
        try:
            self.settle(bindings)
            return self.prepare(bindings)
        except LoadError as error:
            self._fail("start", str(error))
        except (InputError, ObjectsError) as error:
            self._fail("input", str(error))
        return None

    def _raised(self, error: BaseException) -> None:
        from ork.worker.call.failure import describe, print_traceback

        print_traceback(error)
        self.exit_code = 1
        self._failure = describe(error, self._spec["root"], self._shown_inputs, self._spec["paths"])

    def _exited(self, stop: SystemExit) -> None:
        """Handle `sys.exit()`: the process ends with its code and without output. The shim describes the exit code."""
        self.has_exited = True
        if isinstance(stop.code, int):
            self.exit_code = stop.code & 0xFF
        elif stop.code is not None:
            sys.stderr.write(f"{stop.code}\n")
            self.exit_code = 1
        self.is_silent = self.exit_code != 0

    def outcome(self) -> dict[str, Any]:
        """The outcome as JSON data, without empty parts. Not used if the call `is_silent`: then only the exit code is
        reported."""
        outcome: dict[str, Any] = {"exit_code": self.exit_code, "output": self._output}
        if self._failure is not None:
            outcome["failure"] = self._failure
        if self._jobs is not None:
            outcome["jobs"] = self._jobs
        if self._context is not None:
            outcome["metrics"] = self._context.metrics.as_dict() or None
        return outcome

    def reply(self, answer: int) -> None:
        """Write the outcome to the pipe as one line of JSON."""
        if self.is_silent:
            return
        document = self.outcome()
        if self.is_swift:
            document["is_swift"] = True
        imports = self.imports()
        if imports:
            document["imports"] = imports
        rest = f"{dumps(document)}\n".encode()
        while rest:
            rest = rest[os.write(answer, rest) :]

    def prepare(self, bindings: Bindings) -> tuple[Callable[..., Any], Arguments]:
        spec = self._spec
        if spec["kind"] == "custom":
            from ork.worker.call.custom import prepare_custom

            return prepare_custom(spec, bindings, self._make_context)
        function = self.load()
        return function, bind_arguments(function, spec, bindings, self._make_context)

    def settle(self, bindings: Bindings) -> None:
        settle_in(self._spec, bindings)

    def load(self) -> Callable[..., Any]:
        begun = time.process_time()
        function = self.find()
        self._load_seconds = time.process_time() - begun
        return function

    def find(self) -> Callable[..., Any]:
        spec = self._spec
        return load_function(spec["root"], spec["file"], spec["module"], spec["function"], spec["paths"])

    def imports(self) -> list[str]:
        """The installed modules that the task imported, if they are worth preloading."""
        spec, known = self._spec, self._known_modules
        if self._load_seconds < WORTH_SECONDS and len(sys.modules) - known < WORTH_MODULES:
            return []
        return seen_imports((spec["root"], *spec["paths"]), known)

    def _keep(self, result: Any, function: Callable[..., Any]) -> None:
        """Store the result as the output, or keep the jobs that will produce it."""
        handover = sys.modules.get("ork.sdk.defer")
        if handover is not None and isinstance(result, handover.Deferred):
            text = result_text(result.jobs, handover.MAX_BYTES)
            self._jobs = strict_json((text or "").encode(), max_size=handover.MAX_BYTES)
            return
        text = self._encoded(result, function)
        if self._spec.get("output_type") is not None and self._is_wrong(text):
            return
        if text is not None:
            self._output = store_output(self._objects, self._spec["attempt"], text, self._spec["inline_limit"])
            if self._output is None:
                self._fail("output", "the output could not be stored: the disk is full")

    def _encoded(self, result: Any, function: Callable[..., Any]) -> str | None:
        """The result as JSON text. Values that are not JSON are stored first, and deleted if that fails half-way."""
        returns = getattr(function, "__annotations__", {}).get("return")
        if returns is not None and "File" in (returns if isinstance(returns, str) else repr(returns)):
            from ork.worker.data.returned import with_files

            result = with_files(result, returns, function)
        values = LateValues(self._objects, self._spec)
        try:
            return result_text(result, self._spec["output_limit"], values)
        except BaseException:
            values.discard()
            raise

    def _is_wrong(self, text: str | None) -> bool:
        """True, and the call fails, if the output does not have its declared type."""
        from ork.worker.call.declared import wrong_output

        wrong = wrong_output(text, self._spec)
        if wrong is not None:
            self._fail("output", wrong["message"], wrong["detail"])
        return wrong is not None

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
        bindings = Bindings(self._objects, spec["output_limit"], self._environ, spec)
        return {name: bindings.value(bound) for name, bound in param_bounds(spec).items()}

    def _fail(self, kind: str, message: str, detail: dict[str, str] | None = None) -> None:
        sys.stderr.write(message + "\n")
        self.exit_code = 1
        self._failure = {"kind": kind, "message": storable(message), "detail": detail}


def prepared(objects: AttemptDocuments, spec: dict[str, Any]) -> tuple[Callable[..., Any], Arguments]:
    """The task's function and its arguments, after setting up this process for the task."""
    bindings = Bindings(objects, spec["output_limit"], dict(os.environ), spec)
    settle_in(spec, bindings)
    return Call(objects, spec, bindings.environ).prepare(bindings)


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
