"""Writes the arguments of a call as Python code."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from datetime import datetime, timedelta
from typing import Any

from ork.importers.project import Untranslatable
from ork.importers.python.extract import CopiedModule, Missing
from ork.importers.python.values import ForeignCall, Module, NameScope, SourceFunction, Unknown, is_known

MAX_DEPTH = 8


class CallCode(ABC):
    """`code` returns the source of a value, and copies what it uses. Subclasses know outputs of tasks and templates."""

    def __init__(self, copied: CopiedModule, module: Module) -> None:
        self._copied = copied
        self._module = module
        self._depth = 0

    @abstractmethod
    def special(self, value: Any) -> str | None:
        """The code of a value that only the framework knows; None for any other."""

    def code(self, value: Any) -> str:
        """The source of a value. Raises Untranslatable."""
        found = self.special(value)
        if found is not None:
            return found
        if is_known(value):
            return repr(value)
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key!r}: {self.code(item)}" for key, item in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(map(self.code, value)) + "]"
        if isinstance(value, SourceFunction) and not isinstance(value.node, ast.Lambda):
            self.refuse(self._copied.need_function(value))
            return value.name
        if isinstance(value, Unknown | ForeignCall | SourceFunction):
            return self._source(value)
        if isinstance(value, tuple):
            return "(" + "".join(f"{self.code(item)}, " for item in value) + ")"
        if isinstance(value, datetime | timedelta):
            return self._time(value)
        raise Untranslatable("one of its arguments is known only when the file is run")

    def _time(self, value: datetime | timedelta) -> str:
        self._copied.add_import("import datetime as datetime_module")
        if isinstance(value, timedelta):
            return f"datetime_module.timedelta(seconds={value.total_seconds():g})"
        return f"datetime_module.datetime.fromisoformat({value.isoformat()!r})"

    def _source(self, value: Unknown | ForeignCall | SourceFunction) -> str:
        """The expression as it stands; names of an enclosing function are replaced by their values."""
        node, scope = value.node, value.scope
        if node is None or scope is None or self._depth > MAX_DEPTH:
            raise Untranslatable("one of its arguments is known only when the file is run")
        outer, own, around = self, _parameters(node), scope

        class Fill(ast.NodeTransformer):
            def visit_Name(self, name: ast.Name) -> ast.expr:
                if isinstance(name.ctx, ast.Load) and around.local(name.id) and name.id not in own:
                    found = around.get(name.id)
                    if isinstance(found, Unknown) and found.node is None:
                        raise Untranslatable(f"`{name.id}` is known only when the file is run")
                    return ast.parse(outer.code(found), mode="eval").body
                return name

        self._depth += 1
        filled = Fill().visit(ast.parse(ast.unparse(node), mode="eval").body)
        self._depth -= 1
        self.refuse(
            self._copied.need_names(filled, self._module.scope if scope.module is self._module else _outermost(scope))
        )
        return ast.unparse(filled)

    def refuse(self, missing: list[Missing]) -> None:
        if missing:
            raise Untranslatable(f"{missing[0].reason} (line {missing[0].line})")


def _parameters(node: ast.AST) -> set[str]:
    return {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}


def _outermost(scope: NameScope) -> NameScope:
    while scope.parent is not None:
        scope = scope.parent
    return scope
