"""The inline metadata of a Python script (PEP 723): its requirements and Python versions."""

from __future__ import annotations

import re
from typing import NamedTuple

_BLOCK = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
_CLAUSE = re.compile(r"(~=|===?|!=|<=|>=|<|>)\s*([0-9]+(?:\.[0-9]+)*)(\.\*)?")


class HeaderError(Exception):
    """The message says what is wrong with the header."""


class ScriptHeader(NamedTuple):
    dependencies: tuple[str, ...] = ()
    requires_python: str | None = None


def read_script_header(source: str) -> ScriptHeader | None:
    """The parsed header, or None if there is none. Raises HeaderError if it is invalid."""
    blocks = [found for found in _BLOCK.finditer(source) if found["type"] == "script"]
    if not blocks:
        return None
    if len(blocks) > 1:
        raise HeaderError("there are two `# /// script` headers")
    return _header(_parsed(_uncommented(blocks[0]["content"])))


def allows(specifier: str, version: tuple[int, int, int]) -> bool:
    """True if the specifier allows this Python version. Raises HeaderError if it is no version specifier."""
    return all(_clause_allows(clause.strip(), version) for clause in specifier.split(",") if clause.strip())


def _uncommented(content: str) -> str:
    return "".join(line[2:] if line.startswith("# ") else line[1:] for line in content.splitlines(keepends=True))


def _parsed(text: str) -> dict[str, object]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise HeaderError(f"the `# /// script` header is not TOML: {error}") from None


def _header(document: dict[str, object]) -> ScriptHeader:
    dependencies = document.get("dependencies", [])
    if not isinstance(dependencies, list) or not all(isinstance(each, str) and each.strip() for each in dependencies):
        raise HeaderError("`dependencies` in the `# /// script` header must be a list of requirements")
    python = document.get("requires-python")
    if python is not None and not isinstance(python, str):
        raise HeaderError("`requires-python` in the `# /// script` header must be text such as `>=3.11`")
    if python is not None:
        allows(python, (3, 11, 0))
    return ScriptHeader(tuple(dependencies), python)


def _clause_allows(clause: str, version: tuple[int, int, int]) -> bool:
    found = _CLAUSE.fullmatch(clause)
    if found is None:
        raise HeaderError(f"`{clause}` is no version of Python such as `>=3.11`")
    operator, number, wildcard = found.groups()
    wanted = tuple(map(int, number.split(".")))
    if wildcard or (operator == "~=" and len(wanted) > 1):
        same = version[: len(wanted) - (operator == "~=")] == wanted[: len(wanted) - (operator == "~=")]
        return same and version >= wanted if operator == "~=" else same == (operator == "==")
    padded = (*wanted, 0, 0)[:3]
    return {
        "==": version == padded,
        "===": version == padded,
        "!=": version != padded,
        "<": version < padded,
        "<=": version <= padded,
        ">": version > padded,
        ">=": version >= padded,
        "~=": version >= padded,
    }[operator]
