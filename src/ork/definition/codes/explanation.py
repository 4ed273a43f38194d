"""The explanation that `ork explain` prints for one code."""

from __future__ import annotations

from textwrap import indent
from typing import NamedTuple


class CodeExplanation(NamedTuple):
    """`wrong` and `right` are parts of a file, or a command; empty if an example would not help."""

    code: str
    title: str
    why: str
    wrong: str = ""
    right: str = ""

    def text(self) -> str:
        parts = [f"{self.code}: {self.title}", self.why]
        if self.wrong:
            parts.append(f"Wrong:\n{indent(self.wrong, '    ')}")
        if self.right:
            parts.append(f"{'Right' if self.wrong else 'Do'}:\n{indent(self.right, '    ')}")
        return "\n\n".join(parts) + "\n"


def by_code(*explanations: CodeExplanation) -> dict[str, CodeExplanation]:
    return {explanation.code: explanation for explanation in explanations}
