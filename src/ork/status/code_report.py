"""The code of a run: as its version recorded it, and whether the project's files have changed since."""

from __future__ import annotations

import os
from typing import Any

from ork.errors import NotFoundError, UnreadableError
from ork.model.code import Code
from ork.model.ids import RunId, VersionId
from ork.model.infra import IMAGE_ROOT
from ork.model.record import Record
from ork.model.workflow import Version
from ork.objects.calls import in_thread
from ork.source_code.read import read_code
from ork.state.reading import StateReader
from ork.status.diff import diff_code

SHORT_COMMIT = 12
NAMES_SHOWN = 5


class CodeReport(Record):
    """`is_changed` is None if that cannot be known; `note` says why. `difference` is as `diff_code` returns it."""

    run: RunId
    version: VersionId
    code: Code | None
    is_changed: bool | None
    difference: dict[str, Any] | None = None
    note: str | None = None


async def code_report(store: StateReader, run: RunId) -> CodeReport:
    """Compares the recorded code with the files of this machine."""
    row = await store.get_run(run)
    if row is None:
        raise NotFoundError(f"no run `{run}`", hint="`ork runs` lists them")
    try:
        version = await store.get_version(row.version)
    except UnreadableError as error:
        return CodeReport(run, row.version, None, None, note=error.message)
    if version is None:
        return CodeReport(run, row.version, None, None, note="the version is gone")
    return await in_thread(_report, run, version)


def _report(run: RunId, version: Version) -> CodeReport:
    def unknown(note: str) -> CodeReport:
        return CodeReport(run, version.id, version.code, None, note=note)

    if version.root.startswith(IMAGE_ROOT):
        return CodeReport(run, version.id, None, False, note="the code is in the image")
    if version.code is None:
        return unknown("the code of this version was not recorded")
    if not os.path.isdir(version.root):
        return unknown(f"the folder {version.root} is not on this machine")
    now = read_code(version.root, version.workflow)
    if now is None:
        return unknown(f"the folder {version.root} has too many files to compare them")
    return CodeReport(run, version.id, version.code, now.hash != version.code.hash, diff_code(version.code, now))


def commit_text(code: Code | None) -> str | None:
    """The commit as people read it; None if there is none."""
    return None if code is None else commit_name(code.commit, code.dirty)


def commit_name(commit: str | None, dirty: bool | None) -> str | None:
    return None if commit is None else f"commit {commit[:SHORT_COMMIT]}{' with changes' if dirty else ''}"


def difference_text(difference: dict[str, Any]) -> str:
    """What differs, from `diff_code`: the names of a few files."""
    if difference["a"] is None:
        return "recorded from now on"
    if difference["b"] is None:
        return "not recorded any more: there are too many files"
    signs = (("", "changed"), ("+", "added"), ("-", "removed"))
    names = [sign + name for sign, kind in signs for name in difference[kind] or ()]
    more = f" and {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else ""
    return (", ".join(names[:NAMES_SHOWN]) + more) or "changed"
