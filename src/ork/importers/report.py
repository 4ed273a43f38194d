"""The report of an import: what was translated, and what needs a person, with the lines of the original."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from ork.importers.project import ImportedProject, ImportedTask, Level, Note

MAX_TERMINAL_NOTES = 20


class TranslatedShare(NamedTuple):
    """Numbers of tasks by what became of them."""

    total: int
    translated: int  # as they were, nothing to do
    check: int  # translated; a value to supply, or a difference to know about
    person: int  # not translated: the task fails with the place of the original

    @property
    def percent(self) -> float:
        return 100.0 * (self.total - self.person) / self.total if self.total else 100.0


def share_of(tasks: Iterable[ImportedTask]) -> TranslatedShare:
    counts = Counter(task.level for task in tasks if not task.is_helper)
    return TranslatedShare(sum(counts.values()), counts[Level.INFO], counts[Level.CHECK], counts[Level.PERSON])


def by_origin(project: ImportedProject) -> dict[str, TranslatedShare]:
    """The share of each operator (or kind of step), the most frequent first."""
    tasks = [task for workflow in project.workflows for task in workflow.tasks.values() if not task.is_helper]
    origins = Counter(task.origin for task in tasks)
    return {origin: share_of(task for task in tasks if task.origin == origin) for origin, _ in origins.most_common()}


def report_text(project: ImportedProject) -> str:
    """The report as Markdown."""
    every = [task for workflow in project.workflows for task in workflow.tasks.values()]
    share = share_of(every)
    lines = [
        f"# Import of {project.source}",
        "",
        f"{_count(len(project.workflows), 'workflow')}, {_count(share.total, 'task')}: "
        f"{share.translated:,} translated, {share.check:,} translated with something to check, {share.person:,} left to a person.",
        "",
        *_operators(project),
        *_secrets(project),
    ]
    for level, title in (
        (Level.PERSON, "Needs a person"),
        (Level.CHECK, "To check"),
        (Level.INFO, "For information"),
    ):
        notes = [note for note in project.all_notes() if note.level == level]
        if notes:
            lines += [f"## {title}", "", *map(_line, notes), ""]
    lines += ["## What was translated", "", "| Workflow | Task | Was | SourcePlace |", "|---|---|---|---|"]
    for workflow in project.workflows:
        lines += [
            f"| {workflow.name} | {task.name} | {task.origin} | {task.place} |"
            for task in workflow.tasks.values()
            if task.level != Level.PERSON and not task.is_helper
        ]
    return "\n".join([*lines, ""])


def _operators(project: ImportedProject) -> list[str]:
    shares = by_origin(project)
    rows = [
        f"| {name} | {each.total} | {each.translated} | {each.check} | {each.person} |" for name, each in shares.items()
    ]
    return (
        ["| Was | Tasks | Translated | To check | Needs a person |", "|---|---|---|---|---|", *rows, ""] if rows else []
    )


def _secrets(project: ImportedProject) -> list[str]:
    lines: list[str] = []
    if project.secrets:
        lines += [
            "## Values to supply",
            "",
            "Set these variables where the scheduler runs, or write them to `.env`:",
            "",
        ]
        lines += [f"- `{name}`: {meaning}" for name, meaning in sorted(project.secrets.items())] + [""]
    if project.requirements:
        lines += [
            "## Packages",
            "",
            "The functions import other packages. `requirements.txt` lists them, without versions:",
            "",
            "```console",
            "$ python3 -m venv .venv && .venv/bin/pip install -r requirements.txt",
            "```",
            "",
        ]
    return lines


def _line(note: Note) -> str:
    where = f"`{note.place}` " if note.place else ""
    whose = "/".join(part for part in (note.workflow, note.task) if part)
    return f"- {where}{f'**{whose}**: ' if whose else ''}{note.text}"


def terminal_lines(project: ImportedProject) -> list[str]:
    """The summary that `ork import` prints: the numbers, and the first things that need a person."""
    every = [task for workflow in project.workflows for task in workflow.tasks.values()]
    share = share_of(every)
    lines = [f"✓ {_count(len(project.workflows), 'workflow')}, {_count(share.total, 'task')}"]
    lines.append(f"  {share.translated:,} translated · {share.check:,} to check · {share.person:,} left to a person")
    for level, mark in ((Level.PERSON, "✗"), (Level.CHECK, "!")):
        notes = [note for note in project.all_notes() if note.level == level]
        for note in notes[:MAX_TERMINAL_NOTES]:
            where = f"{note.place}: " if note.place else ""
            whose = "/".join(part for part in (note.workflow, note.task) if part)
            lines.append(f"  {mark} {where}{f'{whose}: ' if whose else ''}{note.text}")
        if len(notes) > MAX_TERMINAL_NOTES:
            lines.append(f"  {mark} … {len(notes) - MAX_TERMINAL_NOTES:,} more in REPORT.md")
    if project.secrets:
        names = ", ".join(sorted(project.secrets)[:5]) + (" …" if len(project.secrets) > 5 else "")
        lines.append(f"  ! values to supply, as variables or in .env: {names}")
    return lines


def to_json(project: ImportedProject) -> dict[str, Any]:
    every = [task for workflow in project.workflows for task in workflow.tasks.values()]
    share = share_of(every)
    return {
        "workflows": [{"name": each.name, "tasks": len(each.tasks)} for each in project.workflows],
        "tasks": {"total": share.total, "translated": share.translated, "check": share.check, "person": share.person},
        "by_origin": {name: each._asdict() for name, each in by_origin(project).items()},
        "notes": [
            {
                "level": note.level.value,
                "text": note.text,
                "file": note.place.file if note.place else None,
                "line": note.place.line if note.place else None,
                "workflow": note.workflow,
                "task": note.task,
            }
            for note in project.all_notes()
        ],
        "secrets": sorted(project.secrets),
    }


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
