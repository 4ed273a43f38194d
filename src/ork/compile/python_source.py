"""Inspects a Python file without running it: its functions and their parameters."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from typing import NamedTuple


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
