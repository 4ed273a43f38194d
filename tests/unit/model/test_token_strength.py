"""Tokens that are too easy to guess."""

from __future__ import annotations

import secrets

import pytest

from ork.model.token_strength import weakness_of


@pytest.mark.parametrize(
    "token",
    [
        "secret",
        "changeme",
        "Password123!",
        "supersecret-supersecret-1234567890",
        "my",
        "short-but-odd-9",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "abcabcabcabcabcabcabcabcabc",
        "q7R!x9Kz2mq7R!x9Kz2m",
        "0123456789abcdefghijklmnop",
        "zyxwvutsrqponmlkjihgfedcba",
        "ork_token_ork_token_ork_token",
        "1212121212121212121212121212",
    ],
)
def test_common_tokens_are_weak_and_not_quoted_in_the_reason(token: str) -> None:
    weakness = weakness_of(token)
    assert weakness is not None
    assert token not in weakness


@pytest.mark.parametrize("token", ["ork_a1B2c3D4e5F6g7H8i9J0", "correct horse battery staple"])
def test_random_tokens_of_other_tools_are_accepted(token: str) -> None:
    assert weakness_of(token) is None


def test_generated_tokens_are_never_weak() -> None:
    assert not [text for _ in range(2000) if weakness_of(text := "ork_" + secrets.token_urlsafe(32))]
    assert not [text for _ in range(2000) if weakness_of(text := secrets.token_hex(32))]
