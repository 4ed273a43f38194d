"""Parses CPUs (`0.5`, `500m`) and memory (`512Mi`, `2G`)."""

from __future__ import annotations

import re

from ork.definition.keys import Key, KeyTable, Reading
from ork.definition.nodes import Node
from ork.definition.problems import quoted
from ork.definition.values import read_text
from ork.model.infra import Resources

_CPU = re.compile(r"(\d+(?:\.\d+)?)(m?)")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)([KMGT]i?|k)?")
_UNITS = {None: 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12} | {
    "Ki": 1 << 10,
    "Mi": 1 << 20,
    "Gi": 1 << 30,
    "Ti": 1 << 40,
}
# The minimum of container engines.
MIN_MEMORY = 6 << 20
_MAX_CPU = 10_000
_MAX_MEMORY = 1 << 50


def read_cpu(node: Node, reading: Reading) -> float | None:
    text = read_text(node, reading)
    found = _CPU.fullmatch(text.strip()) if text is not None else None
    cpu = float(found[1]) / (1000 if found[2] else 1) if found else 0.0
    if text is not None and not 0 < cpu <= _MAX_CPU:
        reading.refuse("ORK608", f"{quoted(text)} is not a number of CPUs", node, hint="write 2, 0.5 or 500m")
        return None
    return cpu if text is not None else None


def read_memory(node: Node, reading: Reading) -> int | None:
    text = read_text(node, reading)
    found = _MEMORY.fullmatch(text.strip()) if text is not None else None
    size = int(float(found[1]) * _UNITS[found[2]]) if found else 0
    if text is not None and not MIN_MEMORY <= size <= _MAX_MEMORY:
        hint = "write 512Mi, 2Gi or 500M; at least 6Mi"
        reading.refuse("ORK608", f"{quoted(text)} is not an amount of memory", node, hint=hint)
        return None
    return size if text is not None else None


def memory_text(size: int) -> str:
    """The size in the largest unit that is exact."""
    for unit in ("Gi", "Mi", "Ki"):
        if size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]}{unit}"
    return str(size)


CPU_KEY = Key("cpu", read_cpu, "CPUs: `2`, `0.5` or `500m`.", {"type": ["number", "string"]})
MEMORY_KEY = Key("memory", read_memory, "Memory: `512Mi`, `2Gi`, `500M`.", {"type": ["integer", "string"]})
RESOURCES_TABLE = KeyTable("`resources`", (CPU_KEY, MEMORY_KEY))


def read_resources(node: Node, reading: Reading) -> Resources | None:
    values = RESOURCES_TABLE.read(node, reading)
    return None if values is None else Resources(**values)
