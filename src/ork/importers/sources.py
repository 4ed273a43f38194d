"""Reads source files and facts of this machine."""

from __future__ import annotations

import os
from importlib import resources

from ork.errors import UsageError

MAX_SOURCE = 8 * 1024 * 1024


def read_text(path: str) -> str:
    """The text of a file. UsageError if it cannot be read, is too large or is not text."""
    try:
        if not os.path.isfile(path):
            raise UsageError(f"{path} is not a file")
        with open(path, "rb") as source:
            data = source.read(MAX_SOURCE + 1)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    if len(data) > MAX_SOURCE:
        raise UsageError(f"{path} is larger than {MAX_SOURCE // (1024 * 1024)} MiB")
    if b"\0" in data:
        raise UsageError(f"{path} is not text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def copied_text(module: str) -> str:
    """The text of a file that is copied into projects."""
    return (resources.files("ork.importers.copied") / f"{module}.py").read_text(encoding="utf-8")


def files_below(path: str, suffixes: tuple[str, ...]) -> list[str]:
    """The file itself, or all files of a folder with one of the suffixes, sorted. Hidden and installed ones are omitted."""
    if not os.path.isdir(path):
        return [path]
    found: list[str] = []
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name not in ("__pycache__", "node_modules", "site-packages", "venv")
        )
        found += [os.path.join(folder, name) for name in sorted(files) if name.endswith(suffixes)]
    return found


def local_zone() -> str:
    """The time zone of this machine by its IANA name; UTC if it has none."""
    from zoneinfo import ZoneInfo

    for candidate in (_linked_zone(), _named_zone()):
        try:
            if candidate and ZoneInfo(candidate):
                return "UTC" if candidate in ("Etc/UTC", "UTC", "UCT", "Zulu", "Etc/UCT", "Etc/Zulu") else candidate
        except (ValueError, OSError, LookupError):
            continue
    return "UTC"


def _linked_zone() -> str:
    return os.path.realpath("/etc/localtime").partition("zoneinfo/")[2]


def _named_zone() -> str:
    try:
        with open("/etc/timezone", encoding="ascii") as source:
            return source.read().strip()
    except (OSError, ValueError):
        return ""
