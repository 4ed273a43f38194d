"""Puts values into shell scripts: as variables, so that no value is read as part of the script."""

from __future__ import annotations

from typing import Any

from ork.importers.project import identifier, unique_name


def in_single_quotes(text: str) -> bool:
    """Whether a script that begins with this text is inside single quotes at its end."""
    is_single = is_double = skip = False
    for character in text:
        if skip:
            skip = False
        elif character == "\\" and not is_single:
            skip = True
        elif character == "'" and not is_double:
            is_single = not is_single
        elif character == '"' and not is_single:
            is_double = not is_double
    return is_single


def with_expansion(script: str, expansion: str) -> str:
    """The script continued by `${NAME}`; single quotes are left for it."""
    return script + (f"'\"{expansion}\"'" if in_single_quotes(script) else expansion)


def variable_for(name: str, value: Any, env: dict[str, Any]) -> str:
    """The name of the variable that has this value; added to `env` if there is none."""
    found = next((known for known, other in env.items() if other == value), None)
    if found is None:
        found = unique_name(identifier(name).strip("_") or "value", set(env))
        env[found] = value
    return found
