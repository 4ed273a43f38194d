"""All codes on one page. `python -m ork.definition.codes.page > docs/codes.md` regenerates it."""

from __future__ import annotations

from collections.abc import Iterator

from ork.definition.codes import all_codes
from ork.definition.codes.explanation import CodeExplanation

_CHAPTERS = {
    "1": "Keys and values",
    "2": "References",
    "3": "Schedules",
    "4": "Types",
    "5": "Files and imports",
    "6": "Executors and workers",
    "7": "Locations",
    "8": "The store and the services",
}


def render_page() -> str:
    lines = [
        "# Codes",
        "",
        "Every error has a code that never changes its meaning. `ork explain ORK201` prints the same as this page.",
        "Made from the table in `src/ork/definition/codes`; change it there.",
        "",
    ]
    chapter = ""
    for code, explanation in sorted(all_codes().items()):
        if code[3] != chapter:
            chapter = code[3]
            lines += [f"## {_CHAPTERS[chapter]}", ""]
        lines += _section(explanation)
    return "\n".join(lines).rstrip() + "\n"


def _section(explanation: CodeExplanation) -> Iterator[str]:
    yield from (f"### {explanation.code}", "", f"**{_sentence(explanation.title)}** {explanation.why}", "")
    if explanation.wrong:
        yield from ("Wrong:", "```", explanation.wrong, "```")
    if explanation.right:
        yield from ("Right:" if explanation.wrong else "Do:", "```", explanation.right, "```", "")
    elif explanation.wrong:
        yield ""


def _sentence(title: str) -> str:
    return f"{title[0].upper()}{title[1:]}."


if __name__ == "__main__":
    print(render_page(), end="")
