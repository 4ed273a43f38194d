"""The secrets that an attempt's spec refers to, by the environment variables that hold them in the worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ork.errors import SecretError
from ork.model.masking import Mask

SECRET_PREFIX = "ORK_SECRET_"


def mask_of(spec: Mapping[str, Any], secrets: Callable[[str, str], str]) -> Mask | None:
    """A mask for the values of the spec's secrets; None if it has none. SecretError if one has no value."""
    if _has_sealed([spec.get(part) for part in ("inputs", "env")]):
        raise SecretError("it is given a sensitive param")
    names = secrets_in(spec)
    return (Mask(secrets(name, spec["workflow"]) for name in names) or None) if names else None


def _has_sealed(bound: Any) -> bool:
    below = list(bound.values()) if isinstance(bound, dict) and "value" not in bound else bound
    if isinstance(bound, dict) and "json" in bound:
        return True
    return isinstance(below, list) and any(map(_has_sealed, below))


def secrets_in(spec: Mapping[str, Any]) -> frozenset[str]:
    """Names of the secrets that the task declares."""
    parts = [spec.get(part) for part in ("inputs", "env", "config", "task_config")]
    return frozenset(name for part in parts for name in names_in(part))


def names_in(bound: Any) -> list[str]:
    """Names of secrets at any depth of bound values; user data is not searched."""
    if isinstance(bound, dict):
        if isinstance(bound.get("secret"), str):
            variable: str = bound["secret"]
            return [variable.removeprefix(SECRET_PREFIX)] if variable.startswith(SECRET_PREFIX) else []
        return [] if "value" in bound else names_in(list(bound.values()))
    return [name for each in bound for name in names_in(each)] if isinstance(bound, list) else []
