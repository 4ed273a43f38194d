"""Checks the values that tasks pass to each other against signatures and declared types.

Functions are described by a process that may import them (`ork.worker.convert.annotations`); this module sees only the
descriptions. Problems that the check of the files found are not repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ork.compile.arguments import missing_hint, missing_message
from ork.compile.declared import declared_input
from ork.compile.described import FunctionSignature, UninspectedFunction, function_key
from ork.compile.graph import refs_of
from ork.compile.load import WorkflowDraft
from ork.compile.strict import check_strictly
from ork.compile.types import ANY, Typed, assignable, item_type, type_at
from ork.definition.nodes import Node
from ork.definition.problems import quoted
from ork.definition.report import Suggester
from ork.definition.tasks import ParsedTask
from ork.model.type_text import parse_type
from ork.model.types import Mismatch, check, render_type, resolved
from ork.model.workflow import Const, PythonCall, Ref, SubWorkflow, TaskSpec, Value

if TYPE_CHECKING:
    from ork.model.types import TypeJson

Functions: TypeAlias = Mapping[str, FunctionSignature | UninspectedFunction | None]

_NO_FUNCTION = UninspectedFunction("it is not a function")
_NOT_INSPECTED = UninspectedFunction("it was not inspected")
_RUN_TYPES: dict[str, TypeJson] = {
    "id": "str",
    "attempt": "int",
    "scheduled_for": {"union": ["datetime", "none"]},
}


def check_signatures(draft: WorkflowDraft, functions: Functions, *, strict: bool = False) -> None:
    """Add mismatches to the draft's report. `functions` maps keys to signatures; None for a function that does not
    exist."""
    tasks = _Tasks(draft, functions)
    for spec in draft.workflow.tasks:
        parsed = draft.parsed.tasks[spec.name]
        if parsed.is_complete and not draft.report.is_full:
            _Check(tasks, parsed, spec).run()
            if strict and spec.name not in draft.found.missing and not tasks.is_unknown(spec):
                check_strictly(draft.report, parsed, spec, tasks.found(spec))


class _Tasks:
    """The types of all values a task can receive."""

    def __init__(self, draft: WorkflowDraft, functions: Functions) -> None:
        self.draft = draft
        self.names: dict[str, TypeJson] = dict(draft.workflow.types)
        self.specs = {spec.name: spec for spec in draft.workflow.tasks}
        self.params = {param.name: self.declared(param.type) for param in draft.workflow.params}
        self._functions = functions
        self._outputs: dict[str, Typed] = {}

    def declared(self, text: str) -> Typed:
        return Typed(parse_type(text), self.names)

    def is_unknown(self, spec: TaskSpec) -> bool:
        return self.found(spec) is None

    def found(self, spec: TaskSpec) -> FunctionSignature | UninspectedFunction | None:
        if not isinstance(spec.action, PythonCall):
            return _NO_FUNCTION
        return self._functions.get(function_key(spec.action), _NOT_INSPECTED)

    def signature(self, spec: TaskSpec) -> FunctionSignature | None:
        found = self.found(spec)
        return found if isinstance(found, FunctionSignature) else None

    def output(self, name: str) -> Typed:
        """The output type that downstream tasks receive; a list for a task that fans out."""
        if name not in self._outputs:
            spec = self.specs[name]
            found = self.one_output(spec)
            for fan in (spec.foreach, spec.parallel):
                found = found if fan is None else found.listed()
            self._outputs[name] = found
        return self._outputs[name]

    def one_output(self, spec: TaskSpec) -> Typed:
        if spec.output_type is not None:
            return self.declared(spec.output_type)
        signature = self.signature(spec)
        return (signature.returns if signature else None) or ANY

    def where(self, name: str) -> str:
        signature = self.signature(self.specs[name])
        return f"; {quoted(name)} returns it at {signature.position}" if signature else ""


class _Check:
    """Checks one task. Problems are added to the report."""

    def __init__(self, tasks: _Tasks, parsed: ParsedTask, spec: TaskSpec) -> None:
        self._tasks = tasks
        self._parsed = parsed
        self._spec = spec
        self._signature = tasks.signature(spec)
        self._report = tasks.draft.report
        self._broken: set[Ref] = set()

    def run(self) -> None:
        self._check_refs()
        found = self._tasks.draft.found
        if self._spec.name not in found.checked and self._spec.name not in found.missing:
            self._check_call()
        for name, wanted, is_required in self._expected_inputs():
            self._check_input(name, wanted, is_required)
        self._check_whole_input()
        self._check_output()

    def _check_refs(self) -> None:
        for ref, path in refs_of(self._parsed):
            found = self._follow(ref)
            if isinstance(found, Mismatch):
                self._broken.add(ref)
                message = f"{quoted(str(ref))}: there is no {quoted(found.path)} in {found.actual}"
                hint = f"see what {quoted(ref.task)} gives{self._tasks.where(ref.task)}" if ref.task else None
                self._report.add("ORK406", message, self._parsed.node_at(*path), hint=hint)
            elif path[0] == "foreach" and item_type(found) is None:
                self._refuse_kind(ref, found, "a list", self._parsed.node_at(*path))
            elif path[0] == "parallel" and assignable(found, Typed("int", {})) is not None:
                self._refuse_kind(ref, found, "a whole number", self._parsed.node_at(*path))

    def _refuse_kind(self, ref: Ref, found: Typed, wanted: str, place: Node) -> None:
        shown = render_type(found.type, "gives")
        hint = f"the value is that of {quoted(ref.task)}{self._tasks.where(ref.task)}" if ref.task else None
        self._report.add("ORK405", f"{quoted(str(ref))} is {shown}, not {wanted}", place, hint=hint)

    def _check_call(self) -> None:
        """Check what the source did not show: decorated and imported functions, and modules."""
        action, signature = self._spec.action, self._signature
        if isinstance(action, PythonCall) and self._tasks.is_unknown(self._spec):
            message = f"{quoted(action.file or str(action.module))} has no function {quoted(action.function)}"
            self._report.add("ORK503", message, self._function_node())
        if signature is None:
            return
        given = {*dict(self._spec.inputs), *self._spec.depends_on, *self._tasks.params}
        given |= {"item"} if self._spec.foreach is not None else set()
        missing = [each.name for each in signature.parameters.values() if each.is_required and each.name not in given]
        # An unknown dependency is already reported, and may be the one that is missing here.
        if missing and set(self._parsed.spec.depends_on) <= set(self._spec.depends_on):
            others = [name for name in self._tasks.specs if name != self._spec.name]
            hint = missing_hint(missing[0], signature.position, given, others)
            message = missing_message(signature.name, missing)
            self._report.add("ORK504", message, self._function_node(), hint=hint)
        self._refuse_unknown_inputs(signature)

    def _refuse_unknown_inputs(self, signature: FunctionSignature) -> None:
        for name, _ in self._spec.inputs:
            if name not in signature.parameters and not signature.takes_any_name:
                hint = Suggester(signature.parameters).hint(name) or f"it is defined at {signature.position}"
                message = f"function {quoted(signature.name)} takes no argument {quoted(name)}"
                self._report.add("ORK505", message, self._parsed.node_at("inputs", name), hint=hint)

    def _expected_inputs(self) -> Iterator[tuple[str, Typed, bool]]:
        """Yield the names that need a value, with the expected type."""
        declared = {} if self._reads_one_value() else self._declared_fields()
        for name, kind in declared.items():
            yield name, Typed(kind, self._tasks.names), True
        for parameter in self._signature.parameters.values() if self._signature else ():
            if parameter.type is not None and parameter.name not in declared:
                yield parameter.name, parameter.type, parameter.is_required

    def _declared_fields(self) -> dict[str, TypeJson]:
        shape = resolved(declared_input(self._spec) or "any", self._tasks.names)
        return shape.get("object", {}) if isinstance(shape, dict) else {}

    def _reads_one_value(self) -> bool:
        """True for a program without `inputs`: it reads its item, or the output of its only upstream task, as it is."""
        spec = self._spec
        is_program = not isinstance(spec.action, PythonCall | SubWorkflow) and not spec.inputs
        return is_program and (spec.foreach is not None or len(spec.depends_on) == 1)

    def _check_input(self, name: str, wanted: Typed, is_required: bool) -> None:
        source = self._source(name)
        if source is None or (isinstance(source.value, Ref) and source.value in self._broken):
            return
        if isinstance(source.value, Const):
            value = source.value.value
            if value is None and not is_required:
                return
            kind = {"list": wanted.type} if source.are_items else wanted.type
            mismatch = check(value, kind, wanted.names)
            how = mismatch.of_value() if mismatch else ""
        else:
            mismatch = assignable(source.type, wanted)
            how = mismatch.of_types() if mismatch else ""
        if mismatch is not None:
            shown = render_type(wanted.type)
            details = f": {how}" if mismatch.path or isinstance(source.value, Const) else ""
            message = f"task {quoted(self._spec.name)}: {quoted(name)} must be {shown}, and {source.words}{details}"
            self._report.add("ORK405", message, source.node, hint=self._hint(name, source))

    def _hint(self, name: str, source: _SourceValue) -> str | None:
        asks = f"{quoted(self._spec.name)} asks for it in `input_type`"
        if name not in self._declared_fields():
            asks = f"{quoted(self._spec.name)} asks for it at {self._signature.position}" if self._signature else ""
        return asks + (self._tasks.where(source.task) if source.task else "")

    def _source(self, name: str) -> _SourceValue | None:
        """Where the argument comes from, in the order in which the worker looks it up."""
        spec, parsed = self._spec, self._parsed
        inputs = dict(spec.inputs)
        if name in inputs:
            return self._input_source(inputs[name], parsed.node_at("inputs", name))
        if name == "item" and isinstance(spec.foreach, Const):
            return _SourceValue(spec.foreach, ANY, "not every item is", parsed.node_at("foreach"), are_items=True)
        if name == "item" and spec.foreach is not None:
            return self._given(Ref(("item",)), parsed.node_at("foreach"))
        if name in spec.depends_on:
            place = parsed.node_at("depends_on")
            if name in parsed.spec.depends_on:
                place = parsed.node_at("depends_on", parsed.spec.depends_on.index(name))
            return self._given(Ref(("tasks", name, "output")), place)
        if name in self._tasks.params:
            return self._given(Ref(("params", name)), self._function_node())
        return None

    def _input_source(self, value: Value, place: Node) -> _SourceValue | None:
        if isinstance(value, Const):
            return _SourceValue(value, ANY, "this is not", place)
        if isinstance(value, Ref):
            return self._given(value, place.get("ref") or place)
        return _SourceValue(value, Typed("str", {}), "a secret is text", place)

    def _given(self, ref: Ref, place: Node) -> _SourceValue | None:
        found = self._follow(ref)
        if isinstance(found, Mismatch):
            return None
        whole = ref.task is not None and len(ref.path) == 3
        what = f"task {quoted(ref.task)}" if ref.task and whole else quoted(str(ref))
        verb = "gives" if whole else "is"
        return _SourceValue(ref, found, f"{what} {verb} {render_type(found.type, 'gives')}", place, ref.task)

    def _follow(self, ref: Ref) -> Typed | Mismatch:
        if ref.as_file:
            found = self._follow(Ref(ref.path))
            return found if isinstance(found, Mismatch) else Typed("str", {})
        match ref.path:
            case ("tasks", str(task), "output", *rest) if task in self._tasks.specs:
                return type_at(self._tasks.output(task), rest)
            case ("params", str(name), *rest) if name in self._tasks.params:
                return type_at(self._tasks.params[name], rest)
            case ("run", str(field)):
                return Typed(_RUN_TYPES.get(field, "any"), {})
            case ("item", *rest):
                return type_at(self._item(), rest)
        return ANY

    def _item(self) -> Typed:
        if isinstance(self._spec.foreach, Ref):
            found = self._follow(self._spec.foreach)
            return ANY if isinstance(found, Mismatch) else item_type(found) or ANY
        return ANY

    def _check_whole_input(self) -> None:
        declared = declared_input(self._spec)
        if declared is None or not self._reads_one_value():
            return
        spec, place = self._spec, self._parsed.node_at("input_type")
        ref = Ref(("item",)) if spec.foreach is not None else Ref(("tasks", spec.depends_on[0], "output"))
        source = self._given(ref, place)
        mismatch = assignable(source.type, Typed(declared, self._tasks.names)) if source else None
        if source is not None and mismatch is not None:
            message = f"task {quoted(spec.name)}: its input must be {render_type(declared)}, and {source.words}"
            message += f": {mismatch.of_types()}" if mismatch.path else ""
            hint = f"declared here{self._tasks.where(source.task) if source.task else ''}"
            self._report.add("ORK405", message, place, hint=hint)

    def _check_output(self) -> None:
        signature, text = self._signature, self._spec.output_type
        if signature is None or text is None or signature.returns is None:
            return
        mismatch = assignable(signature.returns, self._tasks.declared(text))
        if mismatch is not None:
            shown = render_type(signature.returns.type, "gives")
            message = (
                f"task {quoted(self._spec.name)}: its output must be {text}, and {quoted(signature.name)} gives {shown}"
            )
            message += f": {mismatch.of_types()}" if mismatch.path else ""
            hint = f"the function is at {signature.position}"
            self._report.add("ORK405", message, self._parsed.node_at("output_type"), hint=hint)

    def _function_node(self) -> Node:
        key = next((key for key in ("function", "file", "module") if self._parsed.body.get(key) is not None), "file")
        return self._parsed.node_at(key)


class _SourceValue(NamedTuple):
    value: Value
    type: Typed
    words: str  # the middle of a sentence: what is passed instead
    node: Node
    task: str | None = None
    are_items: bool = False  # the value is a list with one item per instance
