"""The form between a source and the project that is written: workflows, tasks, files, and notes with their places."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

MAX_NAME = 100
FAILURE_EXIT = 64
RESERVED = {"ork", "workers", "locations"}  # their files are settings


class Untranslatable(Exception):  # noqa: N818 - says that a person is needed, not that something broke
    """A task needs a person; the message says why."""


class Level(StrEnum):
    """How much a note asks of a person."""

    INFO = "info"  # nothing: says what became of something
    CHECK = "check"  # a value to supply, or a difference to know about
    PERSON = "person"  # not translated


class SourcePlace(NamedTuple):
    """A line of the original."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Note(NamedTuple):
    level: Level
    text: str
    place: SourcePlace | None = None
    workflow: str | None = None
    task: str | None = None


@dataclass
class ImportedTask:
    """One task to write. `keys` are those of the YAML language; `origin` is the name of what it was, e.g. BashOperator."""

    name: str
    origin: str
    place: SourcePlace
    keys: dict[str, Any] = field(default_factory=dict)
    depends_on: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    is_helper: bool = False  # added by the import, no task of the original

    @property
    def level(self) -> Level:
        """The highest level of its notes; `info` without any."""
        levels = {note.level for note in self.notes}
        return next((level for level in (Level.PERSON, Level.CHECK) if level in levels), Level.INFO)

    def note(self, level: Level, text: str, place: SourcePlace | None = None) -> None:
        if not any(note.text == text and note.level == level for note in self.notes):
            self.notes.append(Note(level, text, place or self.place, task=self.name))

    def leave_to_a_person(self, reason: str, place: SourcePlace | None = None) -> None:
        """Replaces the action by a command that fails and names the place of the original. Dependencies stay."""
        kept: dict[str, Any] = {key: self.keys[key] for key in ("run_if", "when") if key in self.keys}
        where = place or self.place
        message = f"not imported: {self.origin} at {where}: {reason}"
        self.keys = {"command": failing_command(message), **kept}
        self.note(Level.PERSON, reason, where)


@dataclass
class ImportedWorkflow:
    """One workflow file to write."""

    name: str
    place: SourcePlace
    keys: dict[str, Any] = field(default_factory=dict)
    tasks: dict[str, ImportedTask] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)

    def note(self, level: Level, text: str, place: SourcePlace | None = None) -> None:
        if not any(note.text == text and note.level == level for note in self.notes):
            self.notes.append(Note(level, text, place or self.place, workflow=self.name))

    def add(self, task: ImportedTask) -> ImportedTask:
        self.tasks[task.name] = task
        return task


@dataclass
class ImportedProject:
    """Everything to write. `files` are further files by path; `project` are keys of ork.yaml."""

    source: str  # what was read, for the report
    kind: str  # crontab, airflow, …
    workflows: list[ImportedWorkflow] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)  # name: what it is for
    pools: dict[str, int] = field(default_factory=dict)
    executors: dict[str, Any] = field(default_factory=dict)
    pass_env: list[str] = field(default_factory=list)
    alerts: dict[str, Any] = field(default_factory=dict)
    outbound: list[str] = field(default_factory=list)  # addresses that alerts may connect to
    requirements: set[str] = field(default_factory=set)
    notes: list[Note] = field(default_factory=list)

    def note(self, level: Level, text: str, place: SourcePlace | None = None) -> None:
        if not any(note.text == text and note.place == place for note in self.notes):
            self.notes.append(Note(level, text, place))

    def workflow_name(self, wanted: str) -> str:
        return unique_name(safe_name(wanted, "workflow"), {each.name for each in self.workflows} | RESERVED)

    def mail_alert(
        self, workflow: ImportedWorkflow, to: list[str], what: str, place: SourcePlace, sender: str | None = None
    ) -> None:
        """Mails about failures of the workflow, through the mail server of this machine. `what` names the original."""
        to = [each if "@" in each else f"{each}@localhost" for each in to]
        name = safe_name(to[0].split("@")[0], "mail")
        target = {"mail": {"to": to, "from": sender or to[0], "host": "localhost", "port": 25, "tls": "none"}}
        if self.alerts.get(name, target) != target:
            name = unique_name(name, set(self.alerts))
        if name not in self.alerts:
            self.alerts[name] = target
            self.outbound = ["localhost:25"]
            text = (
                f"{what} became the alert target `{name}` in ork.yaml: mails about failures, through the mail server of this "
                f"machine. `ork alerts test {name}` sends one."
            )
            self.note(Level.CHECK, text, place)
        workflow.keys["alerts"] = [name]

    def all_notes(self) -> list[Note]:
        """The notes of the project, of its workflows and of their tasks, in order."""
        found = list(self.notes)
        for workflow in self.workflows:
            found += workflow.notes
            for task in workflow.tasks.values():
                found += [note._replace(workflow=workflow.name) for note in task.notes]
        return found


def failing_command(message: str) -> list[str]:
    """A command that prints the message and fails."""
    return ["sh", "-c", f'echo "$1" >&2; exit {FAILURE_EXIT}', "not-imported", message]


def safe_name(text: str, default: str = "task") -> str:
    """The text as a name of a workflow or task: letters, digits, `_` and `-`."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_-")[:MAX_NAME]
    return name or default


def identifier(text: str, default: str = "task") -> str:
    """The text as a Python identifier that is no keyword."""
    import keyword

    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or default
    name = f"_{name}" if name[0].isdigit() else name
    return f"{name}_" if keyword.iskeyword(name) else name


def unique_name(name: str, taken: set[str]) -> str:
    """The name, with a number if it is taken."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found
