"""The Python environment of tasks: a folder, requirements, or the word `script`."""

from __future__ import annotations

from ork.definition.actions import read_path
from ork.definition.keys import Key, KeyTable, Reading
from ork.definition.nodes import Kind, Node
from ork.definition.problems import quoted
from ork.definition.values import is_scalar, read_text
from ork.model.workflow import Environment

_SCRIPT = "script"
_HINT = "write a folder, `script`, `{requirements: [pandas]}` or `{requirements_file: requirements.txt}`"


def _read_requirement(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is not None and (not text.strip() or "\n" in text):
        reading.refuse("ORK121", f"{quoted(text)} is not a requirement", node, hint="write it as for pip: `pandas>=2`")
        return None
    return None if text is None else text.strip()


def _read_requirements(node: Node, reading: Reading) -> Environment | None:
    """A list of requirements, or the file that holds them."""
    if is_scalar(node):
        file = read_path(node, reading)
        return None if file is None else Environment(requirements_file=file)
    if node.kind != Kind.LIST:
        reading.expected("a list of requirements, or a file", node)
        return None
    found = [_read_requirement(child, reading) for child in node.value]
    if not found:
        reading.refuse("ORK121", "there are no requirements in the list", node, hint=_HINT)
    if not found or None in found:
        return None
    return Environment(requirements=tuple(each for each in found if each is not None))


def _read_requirements_file(node: Node, reading: Reading) -> Environment | None:
    file = read_path(node, reading)
    return None if file is None else Environment(requirements_file=file)


ENVIRONMENT_TABLE = KeyTable(
    "an environment",
    (
        Key(
            "requirements",
            _read_requirements,
            "Its requirements: a list as for pip, or a file.",
            {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]},
        ),
        Key("requirements_file", _read_requirements_file, "A file of requirements.", {"type": "string"}),
    ),
)


def read_environment(node: Node, reading: Reading) -> Environment | None:
    if is_scalar(node):
        if node.value == _SCRIPT:
            return Environment(script=True)
        path = read_path(node, reading)
        return None if path is None else Environment(path=path)
    if node.kind != Kind.MAP:
        reading.expected("an environment", node, hint=_HINT)
        return None
    values = ENVIRONMENT_TABLE.read(node, reading) or {}
    if len(node.value) != 2:
        wrong = "has no requirements" if not node.value else "has more than one source of requirements"
        reading.refuse("ORK121", f"the environment {wrong}", node, hint=_HINT)
        return None
    return next(iter(values.values()), None)


ENVIRONMENT_KEY = Key(
    "environment",
    read_environment,
    "Its Python environment: a virtual environment's folder, requirements, or `script` for the file's own header.",
    {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/environment"}]},
)
