"""Source positions in a Python file: calls, keywords and functions, found without running it."""

from __future__ import annotations

import ast
import warnings
from typing import NamedTuple, TypeAlias

Expression: TypeAlias = "ast.expr | ast.keyword | ast.arg"


class SourceSpan(NamedTuple):
    """Counts from 0, in characters."""

    line: int = 0
    column: int = 0
    width: int = 1


class PythonPositions:
    """The positions in one file. If the file cannot be parsed, only its lines are known."""

    def __init__(self, source: str) -> None:
        self._lines = source.splitlines()
        self._calls: dict[int, ast.Call] = {}
        self._functions: dict[int, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                # The outermost call that begins in a line defines the task or workflow.
                self._calls.setdefault(node.lineno, node)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for decorator in node.decorator_list:
                    self._functions[decorator.lineno] = node

    def call(self, line: int) -> ast.Call | None:
        """The call that begins in this line, counted from 1."""
        return self._calls.get(line)

    def argument(self, line: int, name: str) -> ast.arg | None:
        """The named parameter of the function whose decorator is in this line."""
        function = self._functions.get(line)
        if function is None:
            return None
        arguments = function.args
        return next(
            (a for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs] if a.arg == name), None
        )

    def definition_span(self, line: int) -> SourceSpan:
        """The name of the function decorated in this line, or else the text of the line."""
        function = self._functions.get(line)
        if function is not None:
            keyword = "async def " if isinstance(function, ast.AsyncFunctionDef) else "def "
            return SourceSpan(function.lineno - 1, function.col_offset + len(keyword), len(function.name))
        call = self._calls.get(line)
        if call is not None:
            return self.of(call)
        text = self._lines[line - 1] if 0 < line <= len(self._lines) else ""
        indent = len(text) - len(text.lstrip())
        return SourceSpan(max(line - 1, 0), indent, max(len(text.rstrip()) - indent, 1))

    def of(self, written: Expression) -> SourceSpan:
        line = written.lineno - 1
        column = self._characters(line, written.col_offset)
        if written.end_lineno != written.lineno or written.end_col_offset is None:
            return SourceSpan(line, column, max(len(self._text(line)) - column, 1))
        return SourceSpan(line, column, max(self._characters(line, written.end_col_offset) - column, 1))

    def key(self, written: ast.keyword) -> SourceSpan:
        """The name of the keyword, without its value."""
        place = self.of(written)
        return place._replace(width=len(written.arg or "**"))

    def _text(self, line: int) -> str:
        return self._lines[line] if line < len(self._lines) else ""

    def _characters(self, line: int, utf8_offset: int) -> int:
        return len(self._text(line).encode("utf-8", "surrogatepass")[:utf8_offset].decode("utf-8", "replace"))
