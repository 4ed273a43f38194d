"""Decodes the bytes of a YAML file. Problems are reported with their position."""

from __future__ import annotations

import re

from ork.definition.report import Report, line_and_column

MAX_BYTES = 64 * 1024 * 1024

# Characters that YAML does not allow; checked here because the parser's message has no position.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def decode_source(data: bytes, report: Report) -> str | None:
    if len(data) > MAX_BYTES:
        message = f"the file has {len(data):,} bytes; {MAX_BYTES:,} are allowed"
        report.add_file("ORK111", message, hint="split the workflow")
        return None
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        report.add_file("ORK110", "the file is UTF-16, not UTF-8", hint="save it as UTF-8")
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        readable = data[: error.start].decode("utf-8-sig")
        report.text = readable
        message = f"the file is not UTF-8: byte 0x{data[error.start]:02x} is invalid here"
        report.add_at("ORK110", message, *line_and_column(readable, len(readable)), hint="save it as UTF-8")
        return None
    forbidden = _FORBIDDEN.search(text)
    if forbidden:
        report.text = text
        message = f"the character U+{ord(forbidden.group()):04X} is not allowed"
        report.add_at("ORK110", message, *line_and_column(text, forbidden.start()), hint="remove it")
        return None
    return text
