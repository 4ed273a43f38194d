from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ork
from ork.objects.local import LocalObjects
from ork.worker.call.arguments import Arguments, bind_arguments
from ork.worker.call.environment import Bindings
from ork.worker.data.errors import InputError

if TYPE_CHECKING:
    from somewhere import Thing  # type: ignore[import-not-found]


def bind(function: Callable[..., Any], folder: Path, **spec: Any) -> Arguments:
    whole = {"inputs": None, "upstream": {}, "params": {}, "function": "f", **spec}
    return bind_arguments(function, whole, Bindings(LocalObjects(str(folder)), 100, {}), ork.Context)


def called(function: Callable[..., Any], folder: Path, **spec: Any) -> Any:
    arguments = bind(function, folder, **spec)
    return function(*arguments.positional, **arguments.named)


def test_positional_only_parameters_are_passed_by_place(tmp_path: Path) -> None:
    def f(a, b=2, /, c=3):  # type: ignore[no-untyped-def]
        return [a, b, c]

    assert called(f, tmp_path, params={"a": 1}) == [1, 2, 3]
    assert called(f, tmp_path, params={"a": 1, "b": 5, "c": 6}) == [1, 5, 6]


def test_extra_inputs_go_to_kwargs_and_are_a_mistake_without(tmp_path: Path) -> None:
    def takes_all(a, *args, **rest):  # type: ignore[no-untyped-def]
        return [a, rest]

    inputs = {"a": {"value": 1}, "b": {"value": 2}}
    assert called(takes_all, tmp_path, inputs=inputs, params={"c": 3}) == [1, {"b": 2}]
    with pytest.raises(InputError, match="no parameter `b`"):
        bind(lambda a: a, tmp_path, inputs=inputs)


def test_decorated_functions_keep_their_parameters(tmp_path: Path) -> None:
    def doubled(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs) * 2

        return wrapper

    @doubled
    def f(n: int) -> int:
        return n

    assert called(f, tmp_path, params={"n": 4}) == 8
    assert called(functools.partial(lambda a, b: [a, b], 1), tmp_path, params={"b": 2}) == [1, 2]


def test_methods_and_callable_objects_work(tmp_path: Path) -> None:
    class Adder:
        def __call__(self, n: int) -> int:
            return n + 1

        def method(self, n: int) -> int:
            return n + 2

    assert called(Adder(), tmp_path, params={"n": 1}) == 2
    assert called(Adder().method, tmp_path, params={"n": 1}) == 3


@pytest.mark.parametrize(
    "function",
    [
        lambda ctx: ctx,
        lambda *, ctx=None: ctx,
    ],
)
def test_a_parameter_named_ctx_gets_the_context(function: Callable[..., Any], tmp_path: Path) -> None:
    assert isinstance(called(function, tmp_path), ork.Context)


def test_a_parameter_annotated_as_context_gets_it(tmp_path: Path) -> None:
    def f(about: ork.Context) -> Any:
        return about

    def g(about: ork.Context | None = None) -> Any:
        return about

    assert isinstance(called(f, tmp_path), ork.Context)
    assert isinstance(called(g, tmp_path), ork.Context)


def test_annotations_that_cannot_be_resolved_convert_nothing(tmp_path: Path) -> None:
    def f(thing: Thing) -> Any:
        return thing

    assert called(f, tmp_path, params={"thing": [1]}) == [1]


def test_none_is_fine_where_it_is_the_default(tmp_path: Path) -> None:
    def f(n: int = None) -> Any:  # type: ignore[assignment]  # noqa: RUF013
        return n

    assert called(f, tmp_path, params={"n": None}) is None


def test_shown_arguments_are_short(tmp_path: Path) -> None:
    arguments = bind(lambda a, b: None, tmp_path, params={"a": "x" * 1000, "b": 12})
    assert arguments.shown["b"] == "12"
    assert len(arguments.shown["a"]) == 100


PLAIN_TYPES = """
import sys
from ork.worker.call.arguments import bind_arguments
from ork.worker.call.environment import Bindings

def real(a: int, b: str, c: dict, d: float, e: list, f: bool): pass
def named(a: "int", b: "str", c: "dict", d: "float", e: "list", f: "bool"): pass

values = {"a": 1.0, "b": "text", "c": {}, "d": 1, "e": [1], "f": True}
spec = {"inputs": None, "upstream": {}, "params": values}
for function in (real, named):
    given = bind_arguments(function, spec, Bindings(None, 100, {}), None).named
    assert given == values and type(given["a"]) is int and type(given["d"]) is float, given
    try:
        bind_arguments(function, {**spec, "params": {**values, "a": "text"}}, Bindings(None, 100, {}), None)
    except Exception as error:
        assert str(error) == "argument `a`: expected a whole number, got \\"text\\"", error
print(*{"typing", "re", "collections"}.intersection(sys.modules))
"""


def test_plain_types_are_known_without_what_takes_long_to_import() -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-c", PLAIN_TYPES],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == []


def test_a_name_that_the_module_gives_to_another_type_is_that_type(tmp_path: Path) -> None:
    space: dict[str, Any] = {"int": list}
    exec("def function(a: 'int'): pass", space)
    with pytest.raises(InputError, match="expected a list"):
        bind(space["function"], tmp_path, params={"a": 1})
