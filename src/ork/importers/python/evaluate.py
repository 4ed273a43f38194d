"""Follows the statements of a source file: assignments, loops over known values, conditions, and functions that it calls.

Nothing of the source is run. What cannot be known becomes `Unknown`. A framework (Airflow, Prefect, Dagster) subclasses
`Evaluator` and answers what calls of its own names yield.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ork.importers.python.expressions import Expressions
from ork.importers.python.modules import Sources
from ork.importers.python.values import Bound, Class, Imported, Module, NameScope, SourceFunction, Unknown

MAX_STEPS = 300_000
MAX_DEPTH = 40


class TooMuchError(Exception):
    """The source does more than an import follows."""


class _Return(Exception):  # noqa: N818 - control flow, as `return` is
    def __init__(self, value: Any) -> None:
        self.value = value


class _Break(Exception):  # noqa: N818
    pass


class _Continue(Exception):  # noqa: N818
    pass


class Evaluator(Expressions):
    """Evaluates modules. Subclasses override the `on_…` methods."""

    def __init__(self, sources: Sources) -> None:
        super().__init__()
        self.sources = sources
        self._steps = 0
        self._depth = 0

    def evaluate_module(self, module: Module) -> None:
        """Fill the module's scope, once."""
        if module.is_evaluated:
            return
        module.is_evaluated = True
        with suppress(_Return, _Break, _Continue):
            self.run(module.tree.body, module.scope)

    # What frameworks answer.

    def on_with(self, value: Any, scope: NameScope, is_enter: bool) -> Any:  # noqa: ARG002
        """`with value`: called on entering and on leaving; returns what `as` binds."""
        return value

    def on_condition(self, node: ast.If | ast.While | ast.IfExp, scope: NameScope) -> None:
        """A condition whose value is unknown."""

    def on_expression(self, value: Any, node: ast.Expr, scope: NameScope) -> None:
        """The value of an expression statement."""

    # Statements.

    def run(self, body: Sequence[ast.stmt], scope: NameScope) -> None:
        for statement in body:
            self._count()
            self._statement(statement, scope)

    def _count(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise TooMuchError

    def _statement(self, node: ast.stmt, scope: NameScope) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self._import(node, scope)
            case ast.Assign():
                value = self.value(node.value, scope)
                for target in node.targets:
                    self.assign(target, value, scope)
            case ast.AnnAssign() if node.value is not None:
                self.assign(node.target, self.value(node.value, scope), scope)
            case ast.AugAssign():
                self._augment(node, scope)
            case ast.Expr():
                self.on_expression(self.value(node.value, scope), node, scope)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found = SourceFunction(node, scope, [self.value(each, scope) for each in node.decorator_list])
                scope.names[node.name] = self.on_function(found)
            case ast.ClassDef():
                bases = [self.value(each, scope) for each in node.bases]
                scope.names[node.name] = Class(node, scope, bases)
            case ast.With() | ast.AsyncWith():
                self._with(node, scope)
            case ast.For() | ast.AsyncFor():
                self._for(node, scope)
            case ast.If():
                self._if(node, scope)
            case ast.Try():
                self.run([*node.body, *node.orelse, *node.finalbody], scope)
            case ast.Return():
                raise _Return(None if node.value is None else self.value(node.value, scope))
            case ast.Break():
                raise _Break
            case ast.Continue():
                raise _Continue
            case ast.While():
                self.on_condition(node, scope)
            case ast.Delete():
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        scope.names.pop(target.id, None)

    def _import(self, node: ast.Import | ast.ImportFrom, scope: NameScope) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                module = self.sources.find(alias.name)
                top = alias.name.partition(".")[0]
                scope.names[alias.asname or top] = (
                    module
                    if module and alias.asname
                    else (module if module and "." not in alias.name else Imported(alias.name if alias.asname else top))
                )
            return
        source = self.sources.find(node.module or "", scope.module, node.level)
        if source is not None and source is not scope.module:
            self.evaluate_module(source)
        for alias in node.names:
            name = alias.asname or alias.name
            dotted = f"{node.module or ''}.{alias.name}"
            below = self.sources.find(dotted, scope.module, node.level)
            if alias.name == "*" and source is not None:
                scope.names |= {key: value for key, value in source.scope.names.items() if not key.startswith("_")}
            elif source is not None and alias.name in source.scope.names:
                scope.names[name] = source.scope.names[alias.name]
            elif below is not None:
                self.evaluate_module(below)
                scope.names[name] = below
            else:
                scope.names[name] = Imported(dotted)

    def assign(self, target: ast.expr, value: Any, scope: NameScope) -> None:
        match target:
            case ast.Name():
                scope.names[target.id] = value
            case ast.Tuple() | ast.List():
                values = self.items(value)
                for index, each in enumerate(target.elts):
                    if isinstance(each, ast.Starred):
                        self.assign(each.value, Unknown(), scope)
                    else:
                        known = values is not None and index < len(values)
                        self.assign(each, values[index] if values is not None and known else Unknown(), scope)
            case ast.Subscript():
                owner, key = self.value(target.value, scope), self.value(target.slice, scope)
                is_index = isinstance(key, int) and isinstance(owner, list) and -len(owner) <= key < len(owner)
                if is_index or (isinstance(owner, dict) and isinstance(key, str | int | tuple)):
                    owner[key] = value
            case ast.Attribute():
                self.set_attribute(self.value(target.value, scope), target.attr, value)

    def set_attribute(self, owner: Any, name: str, value: Any) -> None:
        """`owner.name = value`."""

    def _augment(self, node: ast.AugAssign, scope: NameScope) -> None:
        if isinstance(node.target, ast.Name):
            left = scope.get(node.target.id, Unknown())
            right = self.value(node.value, scope)
            if isinstance(left, list) and isinstance(node.op, ast.Add) and isinstance(right, list | tuple):
                left.extend(right)
                return
            scope.names[node.target.id] = self.binary(left, node.op, right, node, scope)

    def _with(self, node: ast.With | ast.AsyncWith, scope: NameScope) -> None:
        values = []
        for item in node.items:
            value = self.value(item.context_expr, scope)
            bound = self.on_with(value, scope, is_enter=True)
            values.append(value)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, bound, scope)
        try:
            self.run(node.body, scope)
        finally:
            for value in reversed(values):
                self.on_with(value, scope, is_enter=False)

    def _for(self, node: ast.For | ast.AsyncFor, scope: NameScope) -> None:
        items = self.items(self.value(node.iter, scope))
        if items is None:
            self.on_unknown_loop(node, scope)
            return
        for item in items:
            self._count()
            self.assign(node.target, item, scope)
            try:
                self.run(node.body, scope)
            except _Break:
                break
            except _Continue:
                continue

    def on_unknown_loop(self, node: ast.For | ast.AsyncFor, scope: NameScope) -> None:
        """A loop over something that is known only when the code runs: followed once, with unknown names."""
        self.assign(node.target, Unknown(), scope)
        with suppress(_Break, _Continue):
            self.run(node.body, scope)

    def _if(self, node: ast.If, scope: NameScope) -> None:
        test = self.settled(self.value(node.test, scope), node, scope)
        if not isinstance(test, Unknown):
            self.run(node.body if self.truth(test) else node.orelse, scope)
            return
        if self._is_main(node.test):
            return
        self.on_condition(node, scope)
        self.run(node.body, scope)

    @staticmethod
    def _is_main(test: ast.expr) -> bool:
        return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"

    # Calls of functions in the sources.

    def call_function(self, function: SourceFunction, args: list[Any], keywords: dict[str, Any]) -> Any:
        """What the function returns; Unknown if that cannot be known."""
        if self._depth >= MAX_DEPTH or any(
            isinstance(item, ast.Yield | ast.YieldFrom) for item in ast.walk(function.node)
        ):
            return Unknown()
        scope = NameScope(None, function.scope)
        scope.body = [] if isinstance(function.node, ast.Lambda) else function.node.body
        self.bind(function, args, keywords, scope)
        self._depth += 1
        try:
            if isinstance(function.node, ast.Lambda):
                return self.value(function.node.body, scope)
            self.run(function.node.body, scope)
        except _Return as found:
            return found.value
        finally:
            self._depth -= 1
        return None

    def bind(self, function: SourceFunction, args: list[Any], keywords: dict[str, Any], scope: NameScope) -> None:
        """Give the parameters their values; those without one are unknown."""
        given = function.node.args
        positional = [each.arg for each in (*given.posonlyargs, *given.args)]
        defaults = function.defaults
        for name in function.parameters:
            scope.names[name] = self.value(defaults[name], function.scope) if name in defaults else Unknown()
        for name, value in zip(positional, args, strict=False):
            scope.names[name] = value
        if given.vararg is not None:
            scope.names[given.vararg.arg] = list(args[len(positional) :])
        further = {key: value for key, value in keywords.items() if key not in function.parameters}
        scope.names |= {key: value for key, value in keywords.items() if key in function.parameters}
        if given.kwarg is not None:
            scope.names[given.kwarg.arg] = further

    def on_function(self, function: SourceFunction) -> Any:
        """What the name of a function definition is bound to."""
        return function

    def method(self, bound: Bound, args: list[Any], keywords: dict[str, Any], node: ast.Call, scope: NameScope) -> Any:
        return super().method(bound, args, keywords, node, scope)
