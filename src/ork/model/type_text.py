"""Parses types as people write them: `int`, `str?`, `list[Order]`, `dict[str, float]`, `"a" | "b"`, `{id: int, note?:
str}`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from ork.model.types import SCALARS, union_of

if TYPE_CHECKING:
    from ork.model.types import TypeJson

MAX_LENGTH = 4000
MAX_DEPTH = 24
TYPE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN = re.compile(r"""\s*(?:([A-Za-z_][A-Za-z0-9_.]*)|("(?:[^"\\]|\\.)*")|(-?\d+)|([\[\]{}(),:|?]))""")
_SUGGESTIONS = {
    "string": "str",
    "text": "str",
    "integer": "int",
    "number": "float",
    "double": "float",
    "decimal": "float",
    "boolean": "bool",
    "timestamp": "datetime",
    "null": "none",
    "None": "none",
    "Any": "any",
    "array": "list[…]",
    "List": "list[…]",
    "object": "dict[str, …]",
    "map": "dict[str, …]",
    "Dict": "dict[str, …]",
    "Optional": "T?",
}


class TypeTextError(Exception):
    """An invalid type. `start` and `width` count characters. `word` is the unknown name, if that is the mistake."""

    def __init__(self, message: str, start: int, width: int = 1, *, word: str | None = None) -> None:
        super().__init__(message)
        self.start, self.width, self.word = start, max(width, 1), word

    @property
    def suggestion(self) -> str | None:
        """The name to use instead of the unknown one, if it is a common one from another language."""
        return _SUGGESTIONS.get(self.word) if self.word else None


def parse_type(text: str, names: Collection[str] | None = None) -> TypeJson:
    """Parse a type. Names other than the built-in ones must be in `names`; None allows all names."""
    if len(text) > MAX_LENGTH:
        raise TypeTextError("the type is too long", 0)
    parser = _Parser(text, names)
    found = parser.union(0)
    parser.expect_end()
    return found


class _Parser:
    def __init__(self, text: str, names: Collection[str] | None) -> None:
        self._text = text
        self._names = names
        self._position = 0
        self._token = ""
        self._start = 0
        self._advance()

    def union(self, depth: int) -> TypeJson:
        if depth > MAX_DEPTH:
            raise TypeTextError("the type is nested too deeply", self._start)
        members = [self._member(depth)]
        while self._token == "|":
            self._advance()
            members.append(self._member(depth))
        return union_of(members)

    def expect_end(self) -> None:
        if self._token or self._start < len(self._text.rstrip()):
            raise self._unexpected("the end of the type")

    def _member(self, depth: int) -> TypeJson:
        found = self._atom(depth)
        while self._token == "?":
            self._advance()
            found = union_of((found, "none"))
        return found

    def _atom(self, depth: int) -> TypeJson:
        token, start = self._token, self._start
        if token[:1] == '"' or token.lstrip("-").isdigit():
            self._advance()
            return {"enum": [_literal(token, start)]}
        if token == "{":
            return self._object(depth)
        if token == "(":
            self._advance()
            found = self.union(depth + 1)
            self._expect(")")
            return found
        if not token or not (token[0].isalpha() or token[0] == "_"):
            raise self._unexpected("a type")
        self._advance()
        return self._named(token, start, depth)

    def _named(self, word: str, start: int, depth: int) -> TypeJson:
        if word in ("list", "dict"):
            return {word: self._argument(word, depth)}
        if word in SCALARS or self._names is None or word in self._names:
            return word
        raise TypeTextError(f"there is no type `{word}`", start, len(word), word=word)

    def _argument(self, word: str, depth: int) -> TypeJson:
        if self._token != "[":
            return "any"
        self._advance()
        if word == "dict":
            if self._token != "str":
                raise self._unexpected("`str` (keys are always text)")
            self._advance()
            self._expect(",")
        found = self.union(depth + 1)
        self._expect("]")
        return found

    def _object(self, depth: int) -> TypeJson:
        self._advance()
        fields: dict[str, TypeJson] = {}
        optional: list[str] = []
        while self._token != "}":
            name, start = self._field_name(), self._start
            if self._token == "?":
                self._advance()
                optional.append(name)
            self._expect(":")
            if name in fields:
                raise TypeTextError(f"duplicate field `{name}`", start)
            fields[name] = self.union(depth + 1)
            if self._token != "}":
                self._expect(",")
        self._advance()
        return object_type(fields, optional)

    def _field_name(self) -> str:
        token, start = self._token, self._start
        if not token or not (token[0].isalpha() or token[0] in '_"'):
            raise self._unexpected("the name of a field")
        self._advance()
        return str(_literal(token, start)) if token[0] == '"' else token

    def _expect(self, token: str) -> None:
        if self._token != token:
            raise self._unexpected(f"`{token}`")
        self._advance()

    def _advance(self) -> None:
        found = _TOKEN.match(self._text, self._position)
        if found is None:
            rest = self._text[self._position :]
            self._start = self._position + len(rest) - len(rest.lstrip())
            self._token = ""
            return
        self._position = found.end()
        self._start = found.start(found.lastindex or 0)
        self._token = found.group(found.lastindex or 0)

    def _unexpected(self, wanted: str) -> TypeTextError:
        if self._start >= len(self._text.rstrip()):
            return TypeTextError(f"expected {wanted}, and the type ends here", max(0, len(self._text.rstrip()) - 1))
        token = self._token or self._text[self._start]
        return TypeTextError(f"expected {wanted}, found `{token}`", self._start, len(token))


def object_type(fields: dict[str, TypeJson], optional: list[str]) -> TypeJson:
    return {"object": fields, "optional": optional} if optional else {"object": fields}


def _literal(token: str, start: int) -> Any:
    try:
        return json.loads(token)
    except ValueError:
        raise TypeTextError(f"`{token}` is not a value", start, len(token)) from None
