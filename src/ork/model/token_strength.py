"""Detects tokens that are easy to guess. Ork's own have 256 random bits; others come from files and variables."""

from __future__ import annotations

from itertools import pairwise

MIN_LENGTH = 20
MIN_DISTINCT = 8
_COMMON = frozenset(
    [
        "admin",
        "api",
        "changeit",
        "changeme",
        "default",
        "demo",
        "example",
        "foobar",
        "hunter",
        "letmein",
        "ork",
        "orktoken",
        "pass",
        "passwd",
        "password",
        "placeholder",
        "qwerty",
        "root",
        "sample",
        "secret",
        "supersecret",
        "test",
        "testing",
        "token",
        "user",
        "welcome",
        "yoursecret",
        "yourtoken",
    ]
)


def weakness_of(token: str) -> str | None:
    """Why the token is easy to guess, without quoting it; None if it is strong."""
    if _is_made_of_common_words(token.lower()):
        return "it is made of common words"
    if len(token) < MIN_LENGTH:
        return f"it is shorter than {MIN_LENGTH} characters"
    if len(set(token)) < MIN_DISTINCT or _is_repeated(token) or _is_a_sequence(token):
        return "its characters repeat or follow each other"
    return None


def _is_made_of_common_words(text: str) -> bool:
    """True for common words with digits and punctuation anywhere, such as `Secret-secret_123`."""
    letters = "".join(character for character in text if character.isalpha())
    reachable = {0}
    for end in range(1, len(letters) + 1):
        if any(letters[start:end] in _COMMON for start in reachable):
            reachable.add(end)
    return bool(letters) and len(letters) in reachable


def _is_repeated(text: str) -> bool:
    """True if one piece is repeated."""
    return text in (text + text)[1:-1]


def _is_a_sequence(text: str) -> bool:
    """True if most characters are neighbours of the one before, as in `0123456789abcdef…`."""
    steps = [ord(after) - ord(before) for before, after in pairwise(text)]
    return sum(step in (-1, 1) for step in steps) > len(steps) * 0.8
