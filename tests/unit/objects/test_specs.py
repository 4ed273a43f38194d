"""Specs that say much alike: what is read of one after the other is what each says, and belongs to nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from ork.objects import documents
from ork.objects.documents import entries, joined, open_signed, read_sent, seal, sign, token_hash

SECRET = token_hash("token")


def spec(attempt: str, **alike: Any) -> bytes:
    return seal(joined(entries({"attempt": attempt, "number": 1}), entries(alike)), SECRET)


def said(document: bytes) -> dict[str, Any]:
    return {name: value for name, value in read_sent(document).items() if name not in ("own", "signature")}


@pytest.mark.parametrize("more", [{}, {"a": 1}, {"a": [1]}])
def test_each_says_its_own_and_what_is_alike(more: dict[str, Any]) -> None:
    for attempt in ("a/1", "a/2", 'with "quotes", and {braces}'):
        document = spec(attempt, kind="python", params=more, env={})
        assert said(document) == {"attempt": attempt, "number": 1, "kind": "python", "params": more, "env": {}}
        assert open_signed(document, SECRET).items() >= said(document).items()


@pytest.mark.parametrize("params", [{}, {"a": {"b": 1}}])
def test_whoever_changes_what_he_was_told_changes_it_for_nobody_else(params: dict[str, Any]) -> None:
    first = read_sent(spec("a/1", params=params, env={}, root="here"))
    first["params"].setdefault("a", {})["b"] = 2
    first["env"]["X"] = "1"
    first["root"] = "elsewhere"
    assert said(spec("a/2", params=params, env={}, root="here")).items() >= {
        "params": params, "env": {}, "root": "here"
    }.items()  # fmt: skip


def test_what_was_alike_is_no_more_when_it_changes() -> None:
    roots = ["here", "there", "here"]
    assert [said(spec("a/1", root=root))["root"] for root in roots] == roots


def test_what_is_alike_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read_sent(spec("a/1", root="here"))
    monkeypatch.delattr(documents, "_learn")
    assert said(spec("a/2", root="here"))["root"] == "here"


def test_one_that_says_nothing_of_what_is_its_own_is_read_as_a_whole() -> None:
    assert said(sign({"attempt": "a/1", "own": 3}, SECRET)) == {"attempt": "a/1"}
