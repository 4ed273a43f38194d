"""Tasks in images: `image`, `input.to_file`, `output.from_file`, and their consequences."""

from __future__ import annotations

import re
from typing import Any

from ork.definition.keys import Key, KeyTable, Reading
from ork.definition.nodes import Node
from ork.definition.problems import quoted
from ork.definition.quantities import read_resources
from ork.definition.values import is_scalar, read_name, read_text
from ork.model.workflow import Action, Command, Container, PythonCall

CONTAINER = "container"
# Registry with optional port, lower-case names, tag, digest.
_IMAGE = re.compile(
    r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::\d+)?/)?"
    r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*"
    r"(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
_MAX_PATH = 4096


def read_image(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is not None and not _IMAGE.fullmatch(text):
        hint = "write NAME, NAME:TAG or REGISTRY/NAME@sha256:…, in lower case"
        reading.refuse("ORK609", f"{quoted(text)} cannot be an image", node, hint=hint)
        return None
    return text


def read_output_path(node: Node, reading: Reading) -> str | None:
    """The path of a file that a task leaves: absolute in a container, relative for a program on this machine."""
    if is_scalar(node) and not str(node.value).startswith("/"):
        return _read_path(node, reading, str(node.value).split("/"))
    return read_container_path(node, reading)


def read_container_path(node: Node, reading: Reading) -> str | None:
    """The path of a file in a container: absolute and normalized."""
    text = read_text(node, reading)
    return None if text is None else _read_path(node, reading, text.split("/")[1:] if text.startswith("/") else [""])


def _read_path(node: Node, reading: Reading, parts: list[str]) -> str | None:
    text = str(node.value)
    is_plain = all(part not in ("", ".", "..") for part in parts) and "\0" not in text and len(text) <= _MAX_PATH
    if not is_plain:
        hint = "write the whole path, such as /data/input.json"
        reading.refuse("ORK609", f"{quoted(text)} cannot be a file in a container", node, hint=hint)
        return None
    return text


INPUT_TABLE = KeyTable(
    "`input`",
    (
        Key(
            "to_file",
            read_container_path,
            "The file in the container that its input is written to before it starts.",
            {"type": "string", "pattern": "^/"},
            required=True,
        ),
    ),
)
OUTPUT_TABLE = KeyTable(
    "`output`",
    (
        Key(
            "from_file",
            read_output_path,
            "The file that is its output: a path in the container, or in the folder $ORK_OUTPUT_DIR of a command. JSON becomes a "
            "value; any other file is passed on as a file.",
            {"type": "string"},
            required=True,
        ),
    ),
)


def _read_file_of(table: KeyTable) -> Any:
    (key,) = table.keys

    def read(node: Node, reading: Reading) -> str | None:
        values = table.read(node, reading)
        if values == {} and table.missing(node):
            hint = "put values for a function or a command under `inputs`" if table is INPUT_TABLE else None
            reading.refuse("ORK102", f"{table.what} needs `{key.name}`", node, hint=hint)
        return None if values is None else values.get(key.name)

    return read


CONTAINER_KEYS = (
    Key("image", read_image, "The image it runs in. Ork need not be installed in it.", {"type": "string"}),
    Key("input", _read_file_of(INPUT_TABLE), "The input file of an image without a worker.", {"$ref": "#/$defs/input"}),
    Key(
        "output",
        _read_file_of(OUTPUT_TABLE),
        "The output file of a command, or of an image without a worker.",
        {"$ref": "#/$defs/output"},
    ),
    Key(
        "resources",
        read_resources,
        "Requested resources, at most what the worker config allows.",
        {"$ref": "#/$defs/resources"},
    ),
)
WORKER_KEY = Key("worker", read_name, "The worker config it runs with, from workers.yaml.", {"$ref": "#/$defs/name"})


def resolve_container(values: dict[str, Any], body: Node, key: Node, reading: Reading) -> tuple[str, Action] | None:
    """Executor and action of a task in an image, or None if a problem was reported."""
    if any(body.is_written(name) and name not in values for name in ("image", "input", "output", "command")):
        return None  # already reported
    if "image" not in values:
        wrong = next((name for name in ("input", "output", "executor") if name in values), "executor")
        message = f"task {quoted(key.value)} has no `image`, which `{wrong}` requires"
        reading.refuse("ORK609", message, body.get(wrong) or key, hint="name the image to run")
        return None
    executor = values.get("executor")
    calls_python = executor == "python" or any(name in values for name in ("file", "module", "function"))
    misplaced = _out_of_place(values, executor, calls_python)
    if misplaced is not None:
        name, hint = misplaced
        message = f"`{name}` cannot be used with `image`" + (" and a Python function" if calls_python else "")
        reading.refuse("ORK115", message, body.get(name) or key, hint=hint)
        return None
    if calls_python:
        return CONTAINER, PythonCall(values.get("file"), values.get("module"), values.get("function", "main"))
    command = values.get("command", Command(()))
    if values.get("output") is not None and not values["output"].startswith("/"):
        hint = "write the whole path, such as /out/result.parquet"
        message = f"{quoted(values['output'])} cannot be a file in a container"
        place = body.get("output")
        reading.refuse("ORK609", message, (place and place.get("from_file")) or key, hint=hint)
        return None
    return CONTAINER, Container(command.argv, values.get("input"), values.get("output"))


def _out_of_place(values: dict[str, Any], executor: str | None, calls_python: bool) -> tuple[str, str] | None:
    if executor not in (None, CONTAINER, "python"):
        return "executor", "remove it: the image decides what runs"
    if calls_python and not ("file" in values) ^ ("module" in values):
        return ("module" if "module" in values else "executor"), "say `file:` or `module:` of the image"
    rest = ("args", "workflow", "approval", "config", "config_file", "environment")
    names = (*rest, "command", "input", "output") if calls_python else rest
    found = next((name for name in names if name in values), None)
    return None if found is None else (found, "install what the task needs in its image")
