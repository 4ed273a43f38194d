"""Tokens that are too easy to guess. Ork's own have 256 random bits; others come from files and variables."""

from __future__ import annotations

from itertools import pairwise

SHORTEST = 20
FEWEST_DIFFERENT = 8
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
    """What makes the token easy to guess, for a message that does not contain it; None for a good one."""
    if _is_made_of_common_words(token.lower()):
        return "it is made of words that everybody tries first"
    if len(token) < SHORTEST:
        return f"it is shorter than {SHORTEST} characters"
    if len(set(token)) < FEWEST_DIFFERENT or _is_repeated(token) or _is_a_sequence(token):
        return "its characters repeat or follow each other"
    return None


def _is_made_of_common_words(text: str) -> bool:
    """Words of the list, once or several times, with digits and punctuation anywhere: `Secret-secret_123`."""
    letters = "".join(character for character in text if character.isalpha())
    reachable = {0}
    for end in range(1, len(letters) + 1):
        if any(letters[start:end] in _COMMON for start in reachable):
            reachable.add(end)
    return bool(letters) and len(letters) in reachable


def _is_repeated(text: str) -> bool:
    """One piece, again and again."""
    return text in (text + text)[1:-1]


def _is_a_sequence(text: str) -> bool:
    """`0123456789abcdef…`: most characters are the next or the previous one of their neighbour."""
    steps = [ord(after) - ord(before) for before, after in pairwise(text)]
    return sum(step in (-1, 1) for step in steps) > len(steps) * 0.8
