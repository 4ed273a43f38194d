"""Checks the files of a workflow: they exist, they parse, and contain the function with matching parameters.

Files are read through a callable, which keeps this module pure. Each file is read once. Python files are inspected without running
them.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ork.compile.arguments import missing_hint, missing_message
from ork.compile.custom import with_config_file
from ork.compile.environments import check_environment
from ork.compile.project import project_folder_of, relative_to_root
from ork.definition.nodes import Node
from ork.definition.problems import Problem, quoted
from ork.definition.report import ProblemReport, Suggester
from ork.definition.tasks import ParsedTask
from ork.definition.workflow_file import ParsedWorkflow
from ork.model.record import replaced
from ork.model.workflow import Command, Const, Custom, PythonCall, RustProgram, TaskSpec

if TYPE_CHECKING:
    from ork.definition.project import Project


class Function(NamedTuple):
    """`is_open`: the parameters are unknown (a decorator, a class, an assignment, an import)."""

    name: str
    line: int
    required: tuple[str, ...] = ()
    optional: frozenset[str] = frozenset()
    contexts: frozenset[str] = frozenset()
    takes_any_keyword: bool = False
    is_open: bool = False
    is_annotated: bool = False


class PythonSource(NamedTuple):
    """`has_star_import`: there may be names that are not found here."""

    functions: dict[str, Function]
    has_star_import: bool = False


class PythonSyntaxError(Exception):
    """Line and column count from 1; 0 if the parser gave none."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line, self.column = line, column


def read_python(source: bytes) -> PythonSource:
    tree = _parsed(source)
    functions: dict[str, Function] = {}
    has_star_import = False
    for statement in _statements(tree.body):
        for function in _defined(statement):
            has_star_import = has_star_import or function.name == "*"
            functions[function.name] = function
    functions.pop("*", None)
    return PythonSource(functions, has_star_import)


def _parsed(source: bytes) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about user code are shown when it runs
            return ast.parse(source)
    except SyntaxError as error:
        raise PythonSyntaxError(error.msg, error.lineno or 0, error.offset or 0) from None
    except (ValueError, RecursionError, MemoryError) as error:  # NUL bytes, nesting too deep for the parser
        raise PythonSyntaxError(str(error) or "nested too deeply", 0, 0) from None


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run on import, in any branch."""
    for statement in body:
        yield statement
        for part in ("body", "orelse", "finalbody"):
            if isinstance(statement, ast.If | ast.Try | ast.With | ast.For | ast.While):
                yield from _statements(getattr(statement, part, []))
        if isinstance(statement, ast.Try):
            for handler in statement.handlers:
                yield from _statements(handler.body)


def _defined(statement: ast.stmt) -> Iterator[Function]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        yield _function(statement)
    elif isinstance(statement, ast.ClassDef):
        yield Function(statement.name, statement.lineno, is_open=True)
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        for alias in statement.names:
            yield Function(alias.asname or alias.name.split(".")[0], statement.lineno, is_open=True)
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for node in (node for target in targets for node in ast.walk(target)):
            if isinstance(node, ast.Name):
                yield Function(node.id, statement.lineno, is_open=True)


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    first_optional = len(positional) - len(arguments.defaults)
    required = positional[:first_optional]
    optional = positional[first_optional:]
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        (required if default is None else optional).append(argument)
    contexts = frozenset(argument.arg for argument in [*required, *optional] if _is_context(argument))
    return Function(
        node.name,
        node.lineno,
        required=tuple(argument.arg for argument in required if argument.arg not in contexts),
        optional=frozenset(argument.arg for argument in optional) - contexts,
        contexts=contexts,
        takes_any_keyword=arguments.kwarg is not None,
        is_open=bool(node.decorator_list),
        is_annotated=node.returns is not None or any(each.annotation for each in [*required, *optional]),
    )


def _is_context(argument: ast.arg) -> bool:
    annotation = argument.annotation
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value.split(".")[-1] == "Context"
    if isinstance(annotation, ast.Attribute):
        return annotation.attr == "Context"
    return argument.arg == "ctx" or (isinstance(annotation, ast.Name) and annotation.id == "Context")


# Returns the content of a file, relative to the workflow's folder or absolute; None if it does not exist.
ReadFile: TypeAlias = Callable[[str], bytes | None]
FileExists: TypeAlias = Callable[[str], bool]


class Findings(NamedTuple):
    """Task names: functions that are `missing`, functions whose arguments were checked (`checked`), and `annotated`
    ones. Found without running user code."""

    missing: frozenset[str] = frozenset()
    checked: frozenset[str] = frozenset()
    annotated: frozenset[str] = frozenset()


class Files:
    """Reads and caches the files of one workflow."""

    def __init__(
        self,
        read: ReadFile,
        exists: FileExists,
        report: ProblemReport,
        parsed: ParsedWorkflow,
        root: str = ".",
        project: Project | None = None,
    ) -> None:
        self.read = read
        self.exists = exists
        self.report = report
        self.params = parsed.declared_params
        self.tasks = parsed.tasks
        self.root = root
        self.script_dir = project.script_dir if project is not None else None
        self.project_folder = project_folder_of(project, root)
        self._without_function: set[str] = set()
        self._checked: set[str] = set()
        self._annotated: set[str] = set()
        self._sources: dict[str, PythonSource | None] = {}
        self._present: dict[str, bool] = {}
        self._reported: set[str] = set()

    def check(self, task: ParsedTask, depends_on: Iterable[str]) -> TaskSpec:
        """The task with resolved file paths. Problems are added to the report."""
        task = self._located(task)
        spec = self._check_action(task, depends_on)
        return spec if spec.environment is None else check_environment(task, spec, spec.environment, self)

    def locate(self, path: str) -> str:
        """The path relative to the workflow's folder. A leading / may mean the project's folder."""
        if self.project_folder is None or not path.startswith("/"):
            return path
        found = relative_to_root(self.root, self.project_folder, path)
        return found if self._is_present(found) else path

    def has(self, path: str) -> bool:
        """True if the file or folder exists, relative to the workflow's folder."""
        return self._is_present(path)

    def _check_action(self, task: ParsedTask, depends_on: Iterable[str]) -> TaskSpec:
        action = task.spec.action
        if task.spec.image is not None:
            return task.spec  # its files are in the image
        if isinstance(action, Command):
            return self._check_command(task, action)
        if isinstance(action, Custom):
            notebook = task.body.get("notebook")
            if notebook is not None and not self._is_present(str(notebook.value)):
                self._missing(task, str(notebook.value), "notebook")
            return with_config_file(task, action, self.read, self.report)
        if isinstance(action, RustProgram):
            self._check_program(task, action)
        if isinstance(action, PythonCall) and action.file is not None:
            self._check_call(task, action, action.file, depends_on)
        return task.spec

    def _located(self, task: ParsedTask) -> ParsedTask:
        spec, action = task.spec, task.spec.action
        if spec.image is not None or task.body.get("file") is None:
            return task
        if isinstance(action, PythonCall) and action.file is not None:
            action = replaced(action, file=self.locate(action.file))
        elif isinstance(action, RustProgram):
            action = replaced(action, path=self.locate(action.path))
        elif isinstance(action, Command) and isinstance(program := action.argv[0], Const):
            action = Command((Const(self.locate(str(program.value))), *action.argv[1:]))
        return task if action == spec.action else task._replace(spec=replaced(spec, action=action))

    def findings(self) -> Findings:
        return Findings(frozenset(self._without_function), frozenset(self._checked), frozenset(self._annotated))

    def _check_program(self, task: ParsedTask, action: RustProgram) -> None:
        if not self._is_present(action.path):
            self._missing(task, action.path, "file")
        elif not action.path.endswith(".rs") and not self._is_present(f"{action.path}/Cargo.toml"):
            message = f"{quoted(action.path)} is neither a `.rs` file nor a folder with a Cargo.toml"
            self.report.add("ORK507", message, task.node_at("file"), hint="make it one with `cargo init`")

    def _check_command(self, task: ParsedTask, action: Command) -> TaskSpec:
        program = action.argv[0].value if isinstance(action.argv[0], Const) else None
        is_file_key = task.body.get("file") is not None
        absolute_prefixes = ("~", "$") if is_file_key else ("/", "~", "$")
        if not isinstance(program, str) or "/" not in program or program.startswith(absolute_prefixes):
            return task.spec
        if self._is_present(program):
            return task.spec
        name = program.removeprefix("./")
        if is_file_key and self.script_dir and self._is_present(f"{self.script_dir}/{name}"):
            # A bare program name is looked up in script_dir.
            return replaced(task.spec, action=Command((Const(name), *action.argv[1:])))
        self._missing(task, name if is_file_key else program, "file" if is_file_key else "command")
        return task.spec

    def _check_call(self, task: ParsedTask, action: PythonCall, file: str, depends_on: Iterable[str]) -> None:
        if file not in self._sources:
            self._sources[file] = self._source(task, file)
        elif self._sources[file] is None and file not in self._reported:
            self._missing(task, file, "file")
        source = self._sources[file]
        if source is None:
            self._without_function.add(task.spec.name)
            return
        function = source.functions.get(action.function)
        if function is not None:
            if function.is_annotated:
                self._annotated.add(task.spec.name)
            self._check_arguments(task, function, file, depends_on)
        elif not source.has_star_import:
            self._without_function.add(task.spec.name)
            self._no_function(task, action.function, file, source)

    def _source(self, task: ParsedTask, file: str) -> PythonSource | None:
        content = self.read(file.removeprefix("./"))
        if content is None:
            self._missing(task, file, "file")
            return None
        try:
            return read_python(content)
        except PythonSyntaxError as error:
            self._reported.add(file)
            self.report.add_problem(_syntax_problem(task, file, content, error, self.report.file))
            return None

    def _is_present(self, file: str) -> bool:
        path = file.removeprefix("./")
        if path not in self._present:
            self._present[path] = self.exists(path)
        return self._present[path]

    def _missing(self, task: ParsedTask, file: str, key: str) -> None:
        message = f"task {quoted(task.spec.name)}: there is no file {quoted(file)}"
        hint = f"paths begin at {self.root}" if self.root != "." else "paths begin at this file's folder"
        if self.project_folder is not None and file.startswith("/"):
            hint = f"a path that begins with / begins at the project's folder, {self.project_folder}"
        self.report.add("ORK501", message, task.node_at(key, 0), hint=hint)

    def _no_function(self, task: ParsedTask, name: str, file: str, source: PythonSource) -> None:
        callables = [
            function.name for function in source.functions.values() if function.required or not function.is_open
        ]
        hint = Suggester(callables).hint(name)
        if hint is None:
            listed = ", ".join(quoted(found) for found in callables[:5])
            hint = f"it has {listed}: name one with `function:`" if callables else f"add `def {name}(): …` to it"
        message = f"{quoted(file)} has no function {quoted(name)}"
        self.report.add("ORK503", message, self._function_node(task), hint=hint)

    def _check_arguments(self, task: ParsedTask, function: Function, file: str, depends_on: Iterable[str]) -> None:
        if function.is_open:
            return
        self._checked.add(task.spec.name)
        inputs = {name for name, _ in task.spec.inputs}
        where = f"{file}:{function.line}"
        given = inputs.union(depends_on, self.params, ("item",) if task.spec.foreach is not None else ())
        missing = [name for name in function.required if name not in given]
        # An unknown dependency is already reported, and may be the one that is missing here.
        if missing and given.issuperset(task.spec.depends_on):
            others = [name for name in self.tasks if name != task.spec.name]
            hint = missing_hint(missing[0], where, given, others)
            message = missing_message(function.name, missing)
            self.report.add("ORK504", message, self._function_node(task), hint=hint)
        if not function.takes_any_keyword:
            self._refuse_unknown_inputs(task, function, where)

    def _function_node(self, task: ParsedTask) -> Node:
        return task.node_at("function") if task.body.get("function") is not None else task.node_at("file")

    def _refuse_unknown_inputs(self, task: ParsedTask, function: Function, where: str) -> None:
        accepted = [*function.required, *sorted(function.optional)]
        for name, _ in task.spec.inputs:
            if name not in accepted:
                hint = Suggester(accepted).hint(name) or f"it is defined at {where}"
                message = f"function {quoted(function.name)} takes no argument {quoted(name)}"
                self.report.add("ORK505", message, _input_key(task, name), hint=hint)


def _input_key(task: ParsedTask, name: str) -> Node:
    inputs = task.body.get("inputs")
    pairs = inputs.pairs() if inputs is not None else iter(())
    return next((key for key, _ in pairs if key.value == name), task.key)


def _syntax_problem(task: ParsedTask, file: str, content: bytes, error: PythonSyntaxError, workflow: str) -> Problem:
    lines = content.decode("utf-8", "replace").splitlines()
    line = min(error.line, len(lines))
    return Problem(
        "ORK502",
        f"this is not Python: {error}",
        file,
        line,
        max(error.column, 1) if line else 0,
        max(error.column, 1) + 1 if line else 0,
        lines[line - 1] if line else None,
        f"used by task {quoted(task.spec.name)} at {workflow}:{task.key.line + 1}",
    )
