"""Sensitive params as they are stored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ork.model.secret import SealError, is_sealed, redacted_params, seal, seal_params, unseal
from ork.model.workflow import CompiledWorkflow, Param

KEY = bytes(range(32))


@pytest.mark.parametrize("value", ["hush", "", 7, {"a": ["ü", None]}, "x" * 100_000, True])
def test_a_sealed_value_can_be_unsealed_and_is_not_readable(value: Any) -> None:
    sealed = seal(KEY, "flow", "token", value)
    assert is_sealed(sealed)
    assert unseal(KEY, "flow", "token", json.loads(json.dumps(sealed))) == value
    assert "hush" not in json.dumps(sealed)


def test_equal_values_have_equal_ciphertexts() -> None:
    assert seal(KEY, "flow", "token", "a") == seal(KEY, "flow", "token", "a")
    others = [
        seal(KEY, "flow", "token", "b"),
        seal(KEY, "flow", "other", "a"),
        seal(KEY, "flo", "wtoken", "a"),
        seal(b"x" * 32, "flow", "token", "a"),
    ]
    assert seal(KEY, "flow", "token", "a") not in others


def test_a_changed_or_foreign_value_cannot_be_unsealed() -> None:
    sealed = seal(KEY, "flow", "token", "hush")
    text = sealed["$sealed"]
    for place in range(len(text)):
        changed = text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]
        if not _is_padding(text, place):
            with pytest.raises(SealError):
                unseal(KEY, "flow", "token", {"$sealed": changed})
    for key, workflow, name in ((b"x" * 32, "flow", "token"), (KEY, "other", "token"), (KEY, "flow", "other")):
        with pytest.raises(SealError):
            unseal(key, workflow, name, sealed)
    for broken in ({}, {"$sealed": ""}, {"$sealed": "ä"}, None, {"$sealed": "AAAA"}):
        with pytest.raises(SealError):
            unseal(KEY, "flow", "token", broken)


def _is_padding(text: str, place: int) -> bool:
    """The last character before `=` holds bits that no byte uses."""
    return place >= len(text.rstrip("=")) - 1 and text.endswith("=")


def test_only_sensitive_params_are_sealed() -> None:
    params = (Param("a"), Param("b", sensitive=True), Param("c", sensitive=True))
    workflow = CompiledWorkflow("flow", (), params=params)
    stored = seal_params(workflow, {"a": "plain", "b": "hush", "c": None}, KEY)
    assert redacted_params(stored) == {"a": "plain", "b": "•••", "c": None}
    assert seal_params(workflow, stored, KEY) == stored
