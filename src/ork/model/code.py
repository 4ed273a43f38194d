"""The code of a version: a hash of the project's files when the version was made, and the Git commit they were at."""

from __future__ import annotations

import json
import re
from typing import Any

from ork.model.json_fields import to_json
from ork.model.record import Record

NAMES_LIMIT = 64_000
"""Characters of JSON: a project with longer file names in all has a hash, and no names."""
_HASH = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_NAME_HASH = 12


class Code(Record):
    """`files` maps names, relative to the project's folder, to parts of their hashes; None if the names would take too much space."""

    hash: str
    count: int
    commit: str | None = None  # None: not in a Git work tree, or Git did not answer
    dirty: bool | None = None  # whether the code differed from the commit's
    files: dict[str, str] | None = None


class CodeDifference(Record):
    """Names of files, or None for a code without names."""

    added: tuple[str, ...] | None
    removed: tuple[str, ...] | None
    changed: tuple[str, ...] | None


def code_from_hashes(digest: str, hashes: dict[str, str]) -> Code:
    """The code with this overall hash and the hash of each file. Bytes of names that are not UTF-8 are shown as `?`."""
    files = {name.encode("utf-8", "replace").decode(): hashes[name][:_NAME_HASH] for name in sorted(hashes)}
    return Code(digest, len(hashes), files=files if len(json.dumps(files)) <= NAMES_LIMIT else None)


def code_json(code: Code | None) -> dict[str, Any] | None:
    return None if code is None else to_json(code)


def code_text(code: Code | None) -> str | None:
    return None if code is None else json.dumps(code_json(code), separators=(",", ":"))


def code_of_text(text: str | None) -> Code | None:
    """The stored code. One that cannot be read counts as none: runs do not need it."""
    try:
        return None if text is None else code_of_json(json.loads(text))
    except ValueError:
        return None


def code_of_json(row: Any) -> Code | None:
    """The inverse of `code_json`. ValueError if the row is not such a code: it may come from a request."""
    if row is None:
        return None
    if not isinstance(row, dict):
        raise ValueError("`code` is not an object")
    code = Code(row.get("hash", ""), row.get("count", 0), row.get("commit"), row.get("dirty"), row.get("files"))
    if not isinstance(code.hash, str) or not _HASH.fullmatch(code.hash):
        raise ValueError("`hash` of `code` is not a SHA-256 hash")
    if isinstance(code.count, bool) or not isinstance(code.count, int) or code.count < 0:
        raise ValueError("`count` of `code` is not a number of files")
    if code.commit is not None and not (isinstance(code.commit, str) and _COMMIT.fullmatch(code.commit)):
        raise ValueError("`commit` of `code` is not the full name of a commit")
    if not isinstance(code.dirty, bool | None) or not _are_names(code.files):
        raise ValueError("`dirty` or `files` of `code` is of the wrong type")
    return code


def _are_names(files: Any) -> bool:
    if files is None:
        return True
    if not isinstance(files, dict) or not all(isinstance(value, str) for value in files.values()):
        return False
    return len(json.dumps(files)) <= NAMES_LIMIT


def code_difference(old: Code | None, new: Code | None) -> CodeDifference | None:
    """None if the code is the same, or unknown in one of them."""
    if old is None or new is None or old.hash == new.hash:
        return None
    if old.files is None or new.files is None:
        return CodeDifference(None, None, None)
    before, after = old.files, new.files
    return CodeDifference(
        tuple(name for name in after if name not in before),
        tuple(name for name in before if name not in after),
        tuple(name for name, value in after.items() if before.get(name, value) != value),
    )
