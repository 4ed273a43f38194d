"""Evaluates expressions: constants, names, containers, comprehensions, operators, and calls of a few known functions."""

from __future__ import annotations

import ast
import operator
import posixpath
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from ork.importers.python.known_calls import KNOWN_CALLS, NOT_KNOWN, data_method
from ork.importers.python.values import (
    Bound,
    Class,
    ForeignCall,
    Imported,
    Module,
    NameScope,
    SourceFunction,
    Unknown,
    is_known,
)

MAX_ITEMS = 10_000
MAX_TEXT = 1_000_000
_MISSING = object()
_ENVIRONMENT = "os" + ".environ"  # in two parts: nothing here reads it
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: lambda left, right: left is right,
    ast.IsNot: lambda left, right: left is not right,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}


def is_data(value: Any) -> bool:
    """Plain data, or a time."""
    return is_known(value) or isinstance(value, datetime | timedelta)


class Expressions(ABC):
    """`value` evaluates a node. Frameworks override `on_call`, `attribute`, `binary_of_objects` and `item_of`."""

    def value(self, node: ast.expr, scope: NameScope) -> Any:
        handler = getattr(self, f"_eval_{type(node).__name__.lower()}", None)
        if handler is None:
            return Unknown(node, scope)
        try:
            return handler(node, scope)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError):
            return Unknown(node, scope)

    # What frameworks answer.

    def on_call(self, target: Any, args: list[Any], keywords: dict[str, Any], node: ast.Call, scope: NameScope) -> Any:  # noqa: ARG002
        """What a call yields. `NOT_KNOWN` leaves it to the rules below."""
        return NOT_KNOWN

    def attribute(self, owner: Any, name: str, node: ast.Attribute, scope: NameScope) -> Any:  # noqa: ARG002
        return NOT_KNOWN

    def binary_of_objects(self, left: Any, op: ast.operator, right: Any, node: ast.AST, scope: NameScope) -> Any:  # noqa: ARG002
        return NOT_KNOWN

    def item_of(self, owner: Any, key: Any) -> Any:  # noqa: ARG002
        return NOT_KNOWN

    @abstractmethod
    def call_function(self, function: SourceFunction, args: list[Any], keywords: dict[str, Any]) -> Any:
        """What a function of the sources returns."""

    # Containers.

    def items(self, value: Any) -> list[Any] | None:
        """The items of something that is iterated over, or None if they are unknown."""
        if isinstance(value, Imported | ForeignCall | Bound):
            return None
        if isinstance(value, dict):
            return list(value)[:MAX_ITEMS]
        if isinstance(value, list | tuple | set | str):
            return list(value)[:MAX_ITEMS]
        return None

    def truth(self, value: Any) -> bool:
        return bool(value)

    # Nodes.

    def _eval_constant(self, node: ast.Constant, _scope: NameScope) -> Any:
        return node.value

    def _eval_name(self, node: ast.Name, scope: NameScope) -> Any:
        found = scope.get(node.id, _MISSING)
        if found is not _MISSING:
            return Unknown(node, scope) if isinstance(found, Unknown) and not scope.local(node.id) else found
        return Imported(f"builtins.{node.id}")

    def _eval_list(self, node: ast.List, scope: NameScope) -> Any:
        return self._elements(node.elts, scope)

    def _eval_tuple(self, node: ast.Tuple, scope: NameScope) -> Any:
        return tuple(self._elements(node.elts, scope))

    def _eval_set(self, node: ast.Set, scope: NameScope) -> Any:
        return self._elements(node.elts, scope)

    def _elements(self, nodes: list[ast.expr], scope: NameScope) -> list[Any]:
        found: list[Any] = []
        for each in nodes:
            if isinstance(each, ast.Starred):
                items = self.items(self.value(each.value, scope))
                if items is None:
                    raise ValueError("unknown items")
                found += items
            else:
                found.append(self.value(each, scope))
        return found

    def _eval_dict(self, node: ast.Dict, scope: NameScope) -> Any:
        found: dict[Any, Any] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.value(item, scope)
            if key is None:
                if not isinstance(value, dict):
                    return Unknown(node, scope)
                found |= value
            else:
                name = self.value(key, scope)
                if isinstance(name, Unknown):
                    return Unknown(node, scope)
                found[name] = value
        return found

    def _eval_joinedstr(self, node: ast.JoinedStr, scope: NameScope) -> Any:
        parts: list[str] = []
        for each in node.values:
            if isinstance(each, ast.Constant):
                parts.append(str(each.value))
                continue
            assert isinstance(each, ast.FormattedValue)
            value = self.text_of(self.value(each.value, scope))
            if value is None:
                return Unknown(node, scope)
            spec = self.value(each.format_spec, scope) if each.format_spec else ""
            value = repr(value) if each.conversion == ord("r") else value
            parts.append(format(value, spec) if isinstance(spec, str) else str(value))
        return "".join(parts)[:MAX_TEXT]

    def text_of(self, value: Any) -> Any:
        """The value to put into a text, or None if it is unknown."""
        return value if is_data(value) else None

    def _eval_formattedvalue(self, node: ast.FormattedValue, scope: NameScope) -> Any:
        return self.value(node.value, scope)

    def _eval_binop(self, node: ast.BinOp, scope: NameScope) -> Any:
        return self.binary(self.value(node.left, scope), node.op, self.value(node.right, scope), node, scope)

    def binary(self, left: Any, op: ast.operator, right: Any, node: ast.AST, scope: NameScope) -> Any:
        found = self.binary_of_objects(left, op, right, node, scope)
        if found is not NOT_KNOWN:
            return found
        unknown = Unknown(node if isinstance(node, ast.expr) else None, scope)
        if isinstance(op, ast.Add) and isinstance(left, list) and isinstance(right, list):
            return (left + right)[:MAX_ITEMS]
        if isinstance(op, ast.Mult) and is_data(left) and is_data(right):
            is_small = all(not isinstance(each, int) or abs(each) < MAX_ITEMS for each in (left, right))
            return left * right if is_small else unknown
        if isinstance(op, ast.Pow) and isinstance(left, int) and isinstance(right, int) and 0 <= right < 64:
            return left**right
        if isinstance(op, ast.Mod) and isinstance(left, str):
            parts = right if isinstance(right, tuple) else (right,)
            return left % right if all(is_data(each) for each in parts) or is_data(right) else unknown
        if isinstance(op, ast.Div) and isinstance(left, ForeignCall) and left.function.last == "Path":
            return unknown
        apply = _OPERATORS.get(type(op))
        if apply is None or not (is_data(left) and is_data(right)):
            return unknown
        return apply(left, right)

    def _eval_unaryop(self, node: ast.UnaryOp, scope: NameScope) -> Any:
        value = self.value(node.operand, scope)
        if isinstance(value, Unknown) or not is_data(value):
            return Unknown(node, scope)
        match node.op:
            case ast.Not():
                return not value
            case ast.USub():
                return -value
        return value

    def _eval_boolop(self, node: ast.BoolOp, scope: NameScope) -> Any:
        is_and = isinstance(node.op, ast.And)
        value: Any = None
        for each in node.values:
            value = self.value(each, scope)
            if isinstance(self.settled(value, node, scope), Unknown):
                return Unknown(node, scope)
            if bool(value) != is_and:
                return value
        return value

    def _eval_compare(self, node: ast.Compare, scope: NameScope) -> Any:
        left = self.value(node.left, scope)
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.value(right_node, scope)
            left, right = self.settled(left, node, scope), self.settled(right, node, scope)
            if not (is_data(left) and is_data(right)):
                return Unknown(node, scope)
            if not _COMPARISONS[type(op)](left, right):
                return False
            left = right
        return True

    def settled(self, value: Any, node: ast.AST, scope: NameScope) -> Any:  # noqa: ARG002
        """The default of a value that is known only when tasks run, where the shape of the workflow depends on it."""
        if isinstance(value, str) and "{{" in value:
            default = getattr(value, "default", None)
            return Unknown() if default is None else default
        return value

    def _eval_ifexp(self, node: ast.IfExp, scope: NameScope) -> Any:
        test = self.settled(self.value(node.test, scope), node, scope)
        if isinstance(test, Unknown):
            return Unknown(node, scope)
        return self.value(node.body if self.truth(test) else node.orelse, scope)

    def _eval_subscript(self, node: ast.Subscript, scope: NameScope) -> Any:
        owner = self.value(node.value, scope)
        if isinstance(owner, Imported) and owner.dotted == _ENVIRONMENT:
            key = self.value(node.slice, scope)
            return self.environment(key, None) if isinstance(key, str) else Unknown(node, scope)
        if isinstance(node.slice, ast.Slice):
            parts = [
                None if each is None else self.value(each, scope)
                for each in (node.slice.lower, node.slice.upper, node.slice.step)
            ]
            if isinstance(owner, list | tuple | str) and all(each is None or isinstance(each, int) for each in parts):
                return owner[slice(*parts)]
            return Unknown(node, scope)
        key = self.value(node.slice, scope)
        found = self.item_of(owner, key)
        if found is not NOT_KNOWN:
            return found
        if isinstance(owner, dict | list | tuple | str) and not isinstance(key, Unknown):
            return owner[key]
        return Unknown(node, scope)

    def environment(self, name: str, default: Any) -> Any:  # noqa: ARG002
        """A variable of the environment: known only when the code runs."""
        return Unknown()

    def _eval_attribute(self, node: ast.Attribute, scope: NameScope) -> Any:
        owner = self.value(node.value, scope)
        found = self.attribute(owner, node.attr, node, scope)
        if found is not NOT_KNOWN:
            return found
        if isinstance(owner, Module):
            return owner.scope.names.get(node.attr, Unknown(node, scope))
        if isinstance(owner, Imported):
            return self.imported(f"{owner.dotted}.{node.attr}")
        if isinstance(owner, Class):
            return self._class_attribute(owner, node, scope)
        if isinstance(owner, Unknown | ForeignCall | SourceFunction):
            return Unknown(node, scope)
        return Bound(owner, node.attr)

    def _class_attribute(self, owner: Class, node: ast.Attribute, scope: NameScope) -> Any:
        for each in owner.node.body:
            targets = (
                each.targets
                if isinstance(each, ast.Assign)
                else [each.target]
                if isinstance(each, ast.AnnAssign)
                else []
            )
            is_it = any(isinstance(target, ast.Name) and target.id == node.attr for target in targets)
            if is_it and isinstance(each, ast.Assign | ast.AnnAssign) and each.value is not None:
                found = self.value(each.value, owner.scope)
                return found if is_data(found) else Unknown(node, scope)
        return Unknown(node, scope)

    def imported(self, dotted: str) -> Any:
        return Imported(dotted)

    def _eval_lambda(self, node: ast.Lambda, scope: NameScope) -> Any:
        return SourceFunction(node, scope)

    def _eval_namedexpr(self, node: ast.NamedExpr, scope: NameScope) -> Any:
        value = self.value(node.value, scope)
        scope.names[node.target.id] = value
        return value

    def _eval_await(self, node: ast.Await, scope: NameScope) -> Any:
        return self.value(node.value, scope)

    def _eval_listcomp(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, scope: NameScope) -> Any:
        found = self._comprehension(node.generators, scope, lambda inner: self.value(node.elt, inner))
        return Unknown(node, scope) if found is None else found

    _eval_generatorexp = _eval_listcomp
    _eval_setcomp = _eval_listcomp

    def _eval_dictcomp(self, node: ast.DictComp, scope: NameScope) -> Any:
        pairs = self._comprehension(
            node.generators, scope, lambda inner: (self.value(node.key, inner), self.value(node.value, inner))
        )
        return Unknown(node, scope) if pairs is None else dict(pairs)

    def _comprehension(
        self, generators: list[ast.comprehension], scope: NameScope, make: Callable[[NameScope], Any]
    ) -> list[Any] | None:
        inner = NameScope(None, scope)
        found: list[Any] = []

        def step(index: int) -> bool:
            if index == len(generators):
                found.append(make(inner))
                return len(found) < MAX_ITEMS
            items = self.items(self.value(generators[index].iter, inner))
            if items is None:
                return False
            for item in items:
                self.assign(generators[index].target, item, inner)
                tests = [self.value(test, inner) for test in generators[index].ifs]
                if any(isinstance(test, Unknown) for test in tests):
                    return False
                if all(map(self.truth, tests)) and not step(index + 1):
                    return False
            return True

        return found if step(0) else None

    @abstractmethod
    def assign(self, target: ast.expr, value: Any, scope: NameScope) -> None:
        """`target = value`."""

    # Calls.

    def _eval_call(self, node: ast.Call, scope: NameScope) -> Any:
        target = self.value(node.func, scope)
        args = self._elements(node.args, scope)
        keywords: dict[str, Any] = {}
        for each in node.keywords:
            value = self.value(each.value, scope)
            if each.arg is not None:
                keywords[each.arg] = value
            elif isinstance(value, dict):
                keywords |= value
            else:
                keywords["**"] = value
        found = self.on_call(target, args, keywords, node, scope)
        if found is not NOT_KNOWN:
            return found
        match target:
            case SourceFunction():
                return self.call_function(target, args, keywords)
            case Bound():
                return self.method(target, args, keywords, node, scope)
            case Imported():
                return self._call_imported(target, args, keywords, node, scope)
        return Unknown(node, scope)

    def _call_imported(
        self, target: Imported, args: list[Any], keywords: dict[str, Any], node: ast.Call, scope: NameScope
    ) -> Any:
        if target.dotted in ("os" + ".getenv", f"{_ENVIRONMENT}.get") and args and isinstance(args[0], str):
            default = args[1] if len(args) > 1 else keywords.get("default")
            return self.environment(args[0], default)
        if target.dotted == "os.path.join" and args and all(isinstance(each, str) for each in args):
            return posixpath.join(*args)
        known = KNOWN_CALLS.get(target.dotted)
        if target.dotted in ("builtins.int", "builtins.float", "builtins.range", "builtins.bool"):
            args = [self.settled(each, node, scope) for each in args]
        if known is not None and not any(isinstance(each, Unknown) for each in (*args, *keywords.values())):
            return known(*args, **keywords)
        return ForeignCall(target, args, keywords, node, scope)

    def method(self, bound: Bound, args: list[Any], keywords: dict[str, Any], node: ast.Call, scope: NameScope) -> Any:
        found = data_method(bound.owner, bound.name, args, keywords)
        return Unknown(node, scope) if found is NOT_KNOWN else found
