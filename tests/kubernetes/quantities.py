"""Amounts as Kubernetes writes them: `500m`, `64Mi`, `2`."""

from __future__ import annotations

from fractions import Fraction

_SUFFIXES = {
    "m": Fraction(1, 1000),
    "k": Fraction(1000),
    "M": Fraction(1000**2),
    "G": Fraction(1000**3),
    "T": Fraction(1000**4),
    "Ki": Fraction(1024),
    "Mi": Fraction(1024**2),
    "Gi": Fraction(1024**3),
    "Ti": Fraction(1024**4),
}


def amount(text: object) -> Fraction:
    found = str(text)
    for suffix in sorted(_SUFFIXES, key=len, reverse=True):
        if found.endswith(suffix):
            return Fraction(found.removesuffix(suffix)) * _SUFFIXES[suffix]
    return Fraction(found)
