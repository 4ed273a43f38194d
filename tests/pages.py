"""Runs a page of the documentation as its reader would: writes its files, types its commands, compares what they print.

A block with a title is a file. A comment before a block says what is done with it:

    <!-- appends -->           add it to the end of the file
    <!-- inserts after KEY --> add it after the first line that begins with KEY
    <!-- replaces NAME -->     put it in place of the function NAME
    <!-- exit 1 -->            the last command of the block exits with 1
    <!-- not run -->           needs something that a test does not have

In blocks of `console`, lines that begin with `$ ` are commands; the lines below each must occur in what it prints, in this order. `…` stands for
any text. Ids of runs, durations and the width of columns may differ.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_FENCE = re.compile(
    r"(?:^<!-- (?P<how>[^\n]*?) -->\n)?^```(?P<kind>[\w-]*)(?: title=\"(?P<title>[^\"]+)\")?[^\n]*\n(?P<text>.*?)^```$",
    re.M | re.S,
)
_RUN_ID = re.compile(r"\b(?=[a-z0-9]*\d)(?=[a-z0-9]*[a-z])[a-z0-9]{4}\b")
_VARIES = re.compile(r"…|\b\d+(?:\.\d+)?s\b(?: ago)?|\b(?=[a-z0-9]*\d)(?=[a-z0-9]*[a-z])[a-z0-9]{4}\b|\s+")


class Block(NamedTuple):
    line: int
    kind: str
    title: str | None
    how: str
    text: str


class Command(NamedTuple):
    line: int
    text: str
    prints: list[str]
    code: int


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    source = page.read_text()
    for found in _FENCE.finditer(source):
        line = source.count("\n", 0, found.start("text")) + 1
        yield Block(line, found["kind"], found["title"], found["how"] or "", found["text"])


def commands(block: Block) -> list[Command]:
    """The commands of a console block; only the last one may fail."""
    found: list[Command] = []
    for number, line in enumerate(block.text.splitlines(), block.line):
        if line.startswith("$ "):
            found.append(Command(number, line[2:], [], 0))
        elif line.strip() and found:
            found[-1].prints.append(line)
    code = int(block.how.removeprefix("exit ")) if block.how.startswith("exit ") else 0
    return [*found[:-1], found[-1]._replace(code=code)] if found else []


def follow(page: Path, folder: Path, environment: dict[str, str]) -> int:
    """Follows the page in the folder, and returns the number of its commands. AssertionError where it is wrong."""
    typed = 0
    for block in blocks(page):
        if block.how == "not run":
            continue
        if block.title is not None:
            _write(folder / block.title, block)
        elif block.kind == "console":
            for command in commands(block):
                _type(page, command, folder, environment)
                typed += 1
    return typed


def _write(file: Path, block: Block) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    how, _, name = block.how.rpartition(" ")
    if block.how == "appends":
        file.write_text(f"{file.read_text().rstrip()}\n{_gap(block.kind)}{block.text}")
    elif how == "inserts after":
        lines = file.read_text().splitlines(keepends=True)
        at = next(number for number, line in enumerate(lines, 1) if line.startswith(name))
        file.write_text("".join([*lines[:at], block.text, *lines[at:]]))
    elif how == "replaces":
        file.write_text(_with_function(file.read_text(), name, block.text))
    else:
        assert not block.how, f"line {block.line}: `{block.how}` is not known"
        file.write_text(block.text)


def _gap(kind: str) -> str:
    return "\n\n" if kind == "python" else ""


def _with_function(source: str, name: str, text: str) -> str:
    found = next(node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == name)
    lines = source.splitlines(keepends=True)
    return "".join([*lines[: found.lineno - 1], text, *lines[found.end_lineno :]])


def _type(page: Path, command: Command, folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        command.text, shell=True, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
    )  # fmt: skip
    where = f"{page.name}:{command.line}: $ {command.text}\n{done.stdout}"
    assert done.returncode == command.code, f"exit {done.returncode}\n{where}"
    printed = iter(done.stdout.splitlines())
    for line in command.prints:
        expected = _pattern(line.strip())
        assert any(expected.search(each) for each in printed), f"not printed, or not in this order: {line}\n{where}"


def _pattern(line: str) -> re.Pattern[str]:
    """A line of a page, as a pattern for what a command prints."""
    parts, end = [], 0
    for varies in _VARIES.finditer(line):
        parts += [re.escape(line[end : varies.start()]), _any(varies[0])]
        end = varies.end()
    return re.compile("".join([*parts, re.escape(line[end:])]))


def _any(text: str) -> str:
    if text == "…":
        return ".*"
    if text.isspace():
        return r"\s+"
    if text.endswith("ago"):
        return r"(?:[\d.,hms ]+ ago|just now)"
    return r"[a-z0-9]{4,12}" if _RUN_ID.fullmatch(text) else r"[\d.,hms ]+"
