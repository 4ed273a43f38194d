"""`locations.yaml`: images and folders that contain workflows, as a list or as a list under `locations:`."""

from __future__ import annotations

import re
from typing import Any

from ork.definition.keys import Key, KeyTable, Reading
from ork.definition.nodes import Kind, Node, is_null
from ork.definition.problems import Problem, quoted
from ork.definition.report import ProblemReport
from ork.definition.schedule import read_cron
from ork.definition.values import choice, read_name, read_text
from ork.definition.yaml_tree import parse_yaml
from ork.model.location import Location, Lookup

WRAPPER = "locations"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?"
_IMAGE = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::\w[\w.-]{{0,127}})?(?:@sha256:[0-9a-f]{{64}})?", re.ASCII)
_MAX_IMAGE = 400


def load_locations(data: bytes, file: str = "locations.yaml") -> tuple[tuple[Location, ...], tuple[Problem, ...]]:
    """The locations, and all problems in the file. Paths are not resolved. An empty file has no locations."""
    report = ProblemReport(file)
    root = parse_yaml(data, report, may_be_list=True)
    if root is None or is_null(root):
        return (), report.problems()
    reading = Reading(report)
    entries = _entries(root, reading)
    if entries is None:
        return (), report.problems()
    found: dict[str, Location] = {}
    for node in entries:
        location = _read_location(node, reading)
        if location is not None and location.name in found:
            place = node.get("name")
            message = f"duplicate location {quoted(location.name)}"
            reading.refuse("ORK702", message, node if place is None else place)
        elif location is not None:
            found[location.name] = location
    return tuple(found.values()), report.problems()


def _entries(root: Node, reading: Reading) -> list[Node] | None:
    """The list at the top level, or under `locations:`."""
    listed = root if root.kind == Kind.LIST else root.get(WRAPPER)
    if root.kind == Kind.MAP and listed is not None:
        for key, _ in root.pairs():
            if key.value != WRAPPER:
                reading.refuse(
                    "ORK101", f"{quoted(key.value)} is not allowed next to `{WRAPPER}`", key, hint="remove it"
                )
        if is_null(listed):
            return []
    if listed is None or listed.kind != Kind.LIST:
        hint = "begin each with `- name: …`, at the top level or below `locations:`"
        reading.expected("a list of locations", root if listed is None else listed, hint=hint)
        return None
    entries: list[Node] = listed.value
    return entries


def _read_location(node: Node, reading: Reading) -> Location | None:
    values = LOCATION_TABLE.read(node, reading)
    if values is None:
        return None
    for name in LOCATION_TABLE.missing(node):
        reading.refuse("ORK102", f"{LOCATION_TABLE.what} needs `{name}`", node)
    written = [name for name in ("image", "path") if node.get(name) is not None]
    if not written and LOCATION_TABLE.meant(node) & {"image", "path"}:
        return None  # misspelled, which is an error already
    if len(written) != 1:
        message = "a location has an `image` or a `path`" + (", not both" if written else "")
        reading.refuse("ORK701", message, node, hint="add `image: registry.example.org/etl:latest`, or `path: flows`")
        return None
    pull = node.get("pull")
    if pull is not None and "path" in written:
        reading.refuse("ORK701", "`pull` is for images", pull)
    return Location(**values) if "name" in values and written[0] in values else None


def _read_image(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is not None and (len(text) > _MAX_IMAGE or not _IMAGE.fullmatch(text)):
        hint = "write it as [host[:port]/]name[:tag]"
        reading.refuse("ORK703", f"{quoted(text)} is not the name of an image", node, hint=hint)
        return None
    return text


_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}

LOCATION_TABLE = KeyTable(
    "a location",
    (
        Key("name", read_name, "The name of the location.", {"$ref": "#/$defs/name"}, required=True),
        Key("image", _read_image, "The image of its workflows: [host[:port]/]name[:tag].", _TEXT),
        Key("path", read_text, "The folder of its workflows, relative to this file.", _TEXT),
        Key("refresh", read_cron, "When to check for changes, as cron. Default: every five minutes.", _TEXT),
        Key(
            "pull",
            choice(Lookup),
            "Where the image name is resolved: always, at the registry; never, at the local Docker engine.",
            {"enum": [option.value for option in Lookup]},
        ),
    ),
)
