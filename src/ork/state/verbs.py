"""Gives a store on a database its verbs: each is a function of that name whose first argument is the database.

The contract lists the verbs. A backend lists the modules with its functions. A verb that is neither in a module nor
defined by the class raises an error when the class is created.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ork.state.store import StateStore

_COROUTINE = 0x80  # `inspect.CO_COROUTINE`, without the import, which short commands do not need


class DatabaseStore:
    """The base of stores on a database. The method `_do` of a subclass calls a function with the database. `statements`
    counts the statements of the handle, by which `ork bench` and the tests measure cost."""

    def __init_subclass__(cls, modules: Sequence[ModuleType]) -> None:
        for name in contract_verbs():
            if name not in vars(cls):
                setattr(cls, name, _method(_function(cls, name, modules)))

    @property
    def statements(self) -> int:
        count: int = self._db.statements
        return count

    if TYPE_CHECKING:  # type checkers do not see the verbs

        def __getattr__(self, name: str) -> Any: ...


def statements_of(store: StateStore) -> int:
    """The number of statements that this handle has run; 0 for a store without statements."""
    return store.statements if isinstance(store, DatabaseStore) else 0


def contract_verbs() -> list[str]:
    """The names of the contract's coroutine functions."""
    members = {name: member for part in StateStore.__mro__ for name, member in vars(part).items()}
    return [name for name, member in members.items() if _is_coroutine_function(member)]


def _is_coroutine_function(member: object) -> bool:
    code = getattr(member, "__code__", None)
    return code is not None and bool(code.co_flags & _COROUTINE)


def _function(store: type, name: str, modules: Sequence[ModuleType]) -> Callable[..., Any]:
    for module in modules:
        function = vars(module).get(name)
        if function is not None and function.__module__ == module.__name__:
            found: Callable[..., Any] = function
            return found
    raise TypeError(f"{store.__name__} lacks the verb {name} of ork.state.store.StateStore")


def _method(function: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    async def verb(store: Any, /, *args: Any, **kwargs: Any) -> Any:
        return await store._do(function, *args, **kwargs)

    verb.__name__ = function.__name__
    return verb
