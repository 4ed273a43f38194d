"""`secrets` and `outbound` in ork.yaml: declared secrets, the workflows that may use them, and allowed addresses."""

from __future__ import annotations

import re
from typing import Any

from ork.definition.keys import Key, KeyTable, Reading
from ork.definition.nodes import Kind, Node
from ork.definition.problems import quoted
from ork.definition.values import choice, duration, entries_of, read_name, read_text
from ork.model.secret import SecretDeclaration, SecretOrigin, is_reserved

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PATTERN = re.compile(r"[A-Za-z0-9_.*?-]+")
_NEEDED = {SecretOrigin.FILE: "path", SecretOrigin.COMMAND: "argv"}
_OF_ORIGIN = {
    "variable": (SecretOrigin.ENV,),
    "path": (SecretOrigin.FILE,),
    "argv": (SecretOrigin.COMMAND,),
    "secret": (SecretOrigin.GCP, SecretOrigin.KUBERNETES),
    "version": (SecretOrigin.GCP,),
    "key": (SecretOrigin.KUBERNETES,),
}
_EXAMPLES = {"path": "path: /run/secrets/NAME", "argv": "argv: [vault, kv, get, -field=value, secret/NAME]"}


def read_secrets(node: Node, reading: Reading) -> dict[str, SecretDeclaration] | None:
    pairs = _read_pairs(node, reading)
    if pairs is None:
        return None
    written = {key.value: (key, child) for key, child in node.pairs()}
    return {name: made for name, values in pairs if (made := _declaration(name, values, *written[name], reading))}


def read_outbound(node: Node, reading: Reading) -> tuple[str, ...] | None:
    values = OUTBOUND_TABLE.read(node, reading)
    return None if values is None else values.get("allow", ())


def refuse_allow_private(node: Node, reading: Reading) -> None:
    """Report the key of version 0.1, which `outbound` replaced."""
    hint = 'write `outbound: {allow: ["HOST:PORT"]}` with the addresses that alerts go to'
    reading.refuse("ORK104", "`alerts_allow_private` was replaced by `outbound`", node, hint=hint)


def _declaration(
    name: str, values: dict[str, Any], key: Node, body: Node, reading: Reading
) -> SecretDeclaration | None:
    if is_reserved(name) or is_reserved(values.get("variable", "")):
        hint = "names that start with ORK_ are reserved: choose another"
        reading.refuse("ORK211", f"{quoted(name)} cannot be a secret of workflows", key, hint=hint)
        return None
    origin = values.get("from")
    if origin is None:
        if SECRET_TABLE.missing(body):
            hint = f"write `{name}: {{from: env}}`, or `file`, `command`, `gcp` or `kubernetes`"
            reading.refuse("ORK102", "a secret needs `from`", key, hint=hint)
        return None
    needed = _NEEDED.get(origin)
    if needed is not None and needed not in values:
        reading.refuse("ORK102", f"a secret from a {origin} needs `{needed}`", key, hint=f"`{_EXAMPLES[needed]}`")
        return None
    for own, wanted in _OF_ORIGIN.items():
        if own in values and origin not in wanted:
            reading.refuse("ORK104", f"`{own}` cannot be used with `from: {origin}`", key)
            return None
    fields = {field: value for field, value in values.items() if field != "from"}
    return SecretDeclaration(name, origin, **fields)


def _read_variable(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is not None and not _VARIABLE.fullmatch(text):
        reading.refuse("ORK104", f"{quoted(text)} cannot be a variable", node)
        return None
    return text


def _read_words(node: Node, reading: Reading) -> tuple[str, ...] | None:
    if node.kind != Kind.LIST or not node.value:
        reading.expected("a list of words", node, hint="the program and its arguments: `[vault, read, NAME]`")
        return None
    words = [read_text(word, reading) for word in node.value]
    return None if None in words else tuple(str(word) for word in words)


def _read_workflows(node: Node, reading: Reading) -> tuple[str, ...] | None:
    if node.kind != Kind.LIST:
        reading.expected("a list of workflows", node, hint="`workflows: [etl, report-*]`")
        return None
    names = []
    for each in node.value:
        text = read_text(each, reading)
        if text is not None and not _PATTERN.fullmatch(text):
            reading.refuse("ORK104", f"{quoted(text)} is neither a workflow's name nor a pattern with `*`", each)
            return None
        names.append(text)
    return None if None in names else tuple(str(name) for name in names)


def _read_allow(node: Node, reading: Reading) -> tuple[str, ...] | None:
    from ork.model.outbound import parse_allowed

    if node.kind != Kind.LIST:
        reading.expected("a list of addresses", node, hint='`allow: ["127.0.0.1:8080", 10.0.0.0/8, jobs.internal]`')
        return None
    found = []
    for each in node.value:
        text = read_text(each, reading) or ""
        try:
            parse_allowed(text)
        except ValueError:
            hint = "an address, a network or a host name, with or without a port: `10.0.0.0/8`, `jobs.internal:8080`"
            reading.refuse("ORK104", f"{quoted(text)} is not an address", each, hint=hint)
            return None
        found.append(text)
    return tuple(found)


SECRET_TABLE = KeyTable(
    "a secret",
    (
        Key(
            "from",
            choice(SecretOrigin),
            "The source of its value: env, file, command, gcp (Secret Manager) or kubernetes (a Secret).",
            {"enum": [origin.value for origin in SecretOrigin]},
            required=True,
        ),
        Key("variable", _read_variable, "With `env`: the variable. Default: the secret's name.", {"type": "string"}),
        Key("path", read_text, "With `file`: the file that contains the value.", {"type": "string"}),
        Key(
            "argv",
            _read_words,
            "With `command`: the program whose output is the value, and its arguments.",
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
        ),
        Key(
            "secret",
            read_text,
            "With `gcp`: its name in Secret Manager, or projects/P/secrets/NAME. With `kubernetes`: the Secret. Default: the secret's name.",
            {"type": "string"},
        ),
        Key("key", read_text, "With `kubernetes`: the Secret's entry. Default: the secret's name.", {"type": "string"}),
        Key("version", read_text, "With `gcp`: the version. Default: latest.", {"type": ["string", "integer"]}),
        Key(
            "timeout",
            duration(zero_allowed=False),
            "With `command`: its timeout. Default: 10 s.",
            {"type": ["number", "string"]},
        ),
        Key(
            "workflows",
            _read_workflows,
            "The workflows that may use it, by name or pattern. Default: all.",
            {"type": "array", "items": {"type": "string"}},
        ),
    ),
)

OUTBOUND_TABLE = KeyTable(
    "outbound",
    (
        Key(
            "allow",
            _read_allow,
            "Non-public addresses that jobs and alerts may connect to.",
            {"type": "array", "items": {"type": "string"}},
        ),
    ),
)

_read_pairs = entries_of(read_name, SECRET_TABLE.read)
