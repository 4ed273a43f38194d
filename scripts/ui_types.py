"""Writes what the web pages take from Python: the types of the HTTP API (ui/src/api.d.ts), from its own OpenAPI
document, and the titles of the error codes (ui/src/codes.ts).

python scripts/ui_types.py           write the files
python scripts/ui_types.py --check   exit with 1 if one of them differs
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from ork.api.app import all_routes
from ork.api.document import describe
from ork.api.routing import PREFIX, router_of
from ork.definition.codes import all_codes

FOLDER = Path(__file__).resolve().parents[1] / "ui" / "src"
HEAD = "// Made by scripts/ui_types.py from the OpenAPI document: run `make ui-types`. Do not edit.\n"
CODES_HEAD = "// Made by scripts/ui_types.py from ork.definition.codes: run `make ui-types`. Do not edit.\n"
_SIMPLE = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_IDENTIFIER = re.compile(r"^[A-Za-z_]\w*$")


def types() -> str:
    """The text of api.d.ts. The version of Ork is not in it."""
    app = FastAPI(title="Ork", version="0")
    app.router.routes.extend(router_of(all_routes()).routes)
    document = describe(app, all_routes())
    schemas = document["components"]["schemas"]
    parts = [_declaration(name, schema) for name, schema in sorted(schemas.items())]
    operations = sorted(_operations(document["paths"]))
    reads = [text for method, path, text in operations if method == "get"]
    writes = [text for method, path, text in operations if method != "get"]
    parts.append(_table("Reads", "GET: what is given in path and query, and the response.", reads))
    parts.append(_table("Writes", "Other methods, named `METHOD path`.", writes))
    return HEAD + "\n" + "\n".join(parts)


def codes() -> str:
    """The titles of all error codes."""
    lines = [f"  {code}: {json.dumps(each.title, ensure_ascii=False)},\n" for code, each in sorted(all_codes().items())]
    return f"{CODES_HEAD}\nexport const CODES: Readonly<Record<string, string>> = {{\n{''.join(lines)}}};\n"


def _table(name: str, comment: str, lines: list[str]) -> str:
    return f"/** {comment} */\nexport interface {name} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


def _operations(paths: dict[str, Any]) -> list[tuple[str, str, str]]:
    found = []
    for path, methods in paths.items():
        if not path.startswith(PREFIX + "/"):
            continue
        short = path.removeprefix(PREFIX)
        for method, operation in methods.items():
            name = short if method == "get" else f"{method.upper()} {short}"
            found.append((method, short, f"{json.dumps(name)}: {_operation(operation)};"))
    return found


def _operation(operation: dict[str, Any]) -> str:
    given = [
        f"{_key(each['name'])}{'' if each.get('required') else '?'}: {_type(each['schema'])}"
        for each in operation.get("parameters", [])
        if each["in"] in ("path", "query")
    ]
    fields = [f"given: {{ {'; '.join(given)} }}" if given else "given: Record<never, never>"]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if "requestBody" in operation:
        fields.append(f"body: {_type(body['schema']) if body is not None else 'unknown'}")
    fields += [f"answer: {_answer(operation['responses'])}", f"role: {json.dumps(operation.get('x-role'))}"]
    return f"{{ {'; '.join(fields)} }}"


def _answer(responses: dict[str, Any]) -> str:
    good = [response for status, response in sorted(responses.items()) if status.startswith("2")]
    for response in good:
        for kind, content in response.get("content", {}).items():
            if kind == "application/json" and content.get("schema"):
                return _type(content["schema"])
    return "unknown"


def _declaration(name: str, schema: dict[str, Any]) -> str:
    comment = _comment(schema)
    if schema.get("type") == "object" and "properties" in schema:
        required = set(schema.get("required", []))
        lines = [
            f"  {_key(key)}{'' if key in required else '?'}: {_type(value)};"
            for key, value in schema["properties"].items()
        ]
        return f"{comment}export interface {_name(name)} {{\n" + "\n".join(lines) + "\n}\n"
    return f"{comment}export type {_name(name)} = {_type(schema)};\n"


def _comment(schema: dict[str, Any]) -> str:
    text = " ".join(schema.get("description", "").split()).replace("*/", "* /")
    return f"/** {text} */\n" if text else ""


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return _name(schema["$ref"].rpartition("/")[2])
    if "const" in schema or "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(each) for each in schema["anyOf"]))
    kind = schema.get("type")
    if kind == "array":
        return f"({_type(schema.get('items', {}))})[]".replace("(unknown)", "unknown")
    if kind == "object":
        return _object(schema)
    return _SIMPLE.get(kind, "unknown") if isinstance(kind, str) else "unknown"


def _object(schema: dict[str, Any]) -> str:
    if "properties" in schema:
        required = set(schema.get("required", []))
        fields = (f"{_key(k)}{'' if k in required else '?'}: {_type(v)}" for k, v in schema["properties"].items())
        return "{ " + "; ".join(fields) + " }"
    values = schema.get("additionalProperties")
    keys = schema.get("propertyNames", {})
    value = _type(values) if isinstance(values, dict) else "unknown"
    if "$ref" in keys or "enum" in keys:
        return f"Partial<Record<{_type(keys)}, {value}>>"
    return f"Record<string, {value}>"


def _name(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _key(name: str) -> str:
    return name if _IDENTIFIER.match(name) else json.dumps(name)


def main(arguments: list[str]) -> int:
    files = {FOLDER / "api.d.ts": types(), FOLDER / "codes.ts": codes()}
    if "--check" in arguments:
        return 0 if all(file.exists() and file.read_text() == text for file, text in files.items()) else 1
    for file, text in files.items():
        file.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
